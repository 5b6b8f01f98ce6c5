//! The parameters of PrintQueue's programs. They only measure, so scenarios do not have them.

use super::set::replace_all;
use anyhow::Result;
use queuescope_p4::algorithms::{printqueue_monitor_with, printqueue_windows_with};
use queuescope_p4::ir::SwitchProgram;
use queuescope_scenario::Parameter;
use queuescope_sketch::{CellWindowsParams, DepthStackParams};

/// One of the programs, with the port that it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrintQueue {
    /// `printqueue-windows`.
    Windows(CellWindowsParams, u16),
    /// `printqueue-monitor`.
    Monitor(DepthStackParams, u16),
}

impl PrintQueue {
    /// The program of this name with its defaults; none if it is not one of them.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "printqueue-windows" => Some(Self::Windows(CellWindowsParams::default(), 0)),
            "printqueue-monitor" => Some(Self::Monitor(DepthStackParams::default(), 0)),
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Windows(..) => "printqueue-windows",
            Self::Monitor(..) => "printqueue-monitor",
        }
    }

    /// The same with some parameters replaced: `KEY=VALUE`.
    ///
    /// # Errors
    /// Names the first text that is not a parameter with a number.
    pub fn with(mut self, set: &[String]) -> Result<Self> {
        let known: Vec<_> = self.parameters().into_iter().map(|it| it.key).collect();
        replace_all(self.name(), set, &known, |key, value| {
            let number = value.parse().map_err(|_| format!("must be a whole number from 0 to {}", u16::MAX))?;
            self.set(key, number);
            Ok(())
        })?;
        Ok(self)
    }

    /// The program.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn program(&self) -> Result<SwitchProgram> {
        Ok(match self {
            Self::Windows(params, port) => printqueue_windows_with(params, *port)?,
            Self::Monitor(params, port) => printqueue_monitor_with(params, *port)?,
        })
    }

    /// The parameters with their values and ranges.
    pub fn parameters(&self) -> Vec<Parameter> {
        let of = |key: &str, value: u32, range: &str, about| Parameter {
            key: key.to_owned(),
            value: value.to_string(),
            range: range.to_owned(),
            about,
        };
        let port = |port: u16| of("port", port.into(), "0 to 511", "The port that is measured");
        match *self {
            Self::Windows(CellWindowsParams { cell_bits, index_bits, alpha, windows }, measured) => vec![
                of("cell-bits", cell_bits, "0 to 16", "A cell of the first window covers 2^cell-bits ns (m0)"),
                of("index-bits", index_bits, "1 to 16", "A window has 2^index-bits cells (k)"),
                of("alpha", alpha, "1 to 8", "A cell covers 2^alpha cells of the window before it"),
                of("windows", windows, "1 to 16, and to 1 + (31 - index-bits) / alpha", "The number of windows (T)"),
                port(measured),
            ],
            Self::Monitor(DepthStackParams { step_bits, level_bits }, measured) => vec![
                of("step-bits", step_bits, "0 to 10", "A level is 2^step-bits cells of the packet buffer"),
                of("level-bits", level_bits, "1 to 16", "There are 2^level-bits levels"),
                port(measured),
            ],
        }
    }

    /// Replaces a parameter of this name.
    fn set(&mut self, key: &str, value: u16) {
        let place = match (self, key) {
            (Self::Windows(_, port) | Self::Monitor(_, port), "port") => {
                *port = value;
                return;
            }
            (Self::Windows(params, _), "cell-bits") => &mut params.cell_bits,
            (Self::Windows(params, _), "index-bits") => &mut params.index_bits,
            (Self::Windows(params, _), "alpha") => &mut params.alpha,
            (Self::Windows(params, _), "windows") => &mut params.windows,
            (Self::Monitor(params, _), "step-bits") => &mut params.step_bits,
            (Self::Monitor(params, _), "level-bits") => &mut params.level_bits,
            _ => return,
        };
        *place = value.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, set: &[&str]) -> String {
        let set: Vec<_> = set.iter().map(|it| (*it).to_owned()).collect();
        let program = PrintQueue::named(name).expect("it is one of them").with(&set).and_then(|it| it.program());
        program.expect_err("it is not valid").to_string()
    }

    #[test]
    fn each_parameter_can_be_set() {
        for name in ["printqueue-windows", "printqueue-monitor"] {
            let usual = PrintQueue::named(name).expect("it is one of them");
            for parameter in usual.parameters() {
                let value = parameter.value.parse::<u16>().expect("a number") + 1;
                let set = usual.with(&[format!("{}={value}", parameter.key)]).expect("it is valid");
                let other = set.parameters().into_iter().find(|it| it.key == parameter.key).expect("it is there");
                assert_eq!(other.value, value.to_string());
                let differ = usual.parameters().into_iter().zip(set.parameters()).filter(|(one, other)| one != other);
                assert_eq!(differ.count(), 1, "{}", parameter.key);
            }
        }
    }

    #[test]
    fn errors_name_the_parameter() {
        let windows = "printqueue-windows";
        assert_eq!(error(windows, &["alpha"]), "--set alpha: write KEY=VALUE");
        assert_eq!(error(windows, &["alpha=2us"]), "--set alpha=2us: '2us' must be a whole number from 0 to 65535");
        assert_eq!(error(windows, &["alpha=1", "alpha=2"]), "--set alpha=2: alpha is set twice: give it one value");
        assert_eq!(
            error("printqueue-monitor", &["alpha=2"]),
            "--set alpha=2: unknown parameter: use one of step-bits, level-bits, port"
        );
        assert_eq!(
            error(windows, &["alpha=8"]),
            "the program printqueue-windows: the parameter windows: must be 1 to 3, not 4"
        );
        assert_eq!(
            error(windows, &["port=512"]),
            "the program printqueue-windows: the parameter port: must be 0 to 511, not 512"
        );
    }
}
