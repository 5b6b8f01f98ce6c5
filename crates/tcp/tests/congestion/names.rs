//! The names of algorithms and profiles.

use crate::congestion::MSS;
use queuescope_tcp::congestion::Ns3;
use queuescope_tcp::{Algorithm, Congestion, CongestionControl, Controller, EcnUse, Profile};
use queuescope_wire::Nanos;

#[test]
fn each_has_a_name_that_reads_back() {
    let names: Vec<_> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    assert_eq!(
        names,
        [
            "newreno", "cubic", "bbr", "vegas", "illinois", "dctcp", "hstcp", "scalable", "htcp", "bic", "hybla",
            "yeah", "veno", "westwood", "lola", "bbr3", "prague"
        ]
    );
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(*algorithm));
        for profile in Profile::ALL {
            let params = algorithm.params(*profile);
            assert_eq!(params.algorithm(), *algorithm);
            let control = Controller::new(&params, 1_448, 14_480, 1);
            assert_eq!(control.name(), algorithm.name());
            assert_eq!((control.window(), control.slow_start_threshold()), (14_480, u64::MAX));
        }
    }
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse(), Ok(*profile));
    }
}

#[test]
fn the_error_for_an_unknown_name_lists_the_known_ones() {
    let error = "reno".parse::<Algorithm>().unwrap_err().to_string();
    assert_eq!(
        error,
        "'reno' is not a congestion control; there are newreno, cubic, bbr, vegas, illinois, dctcp, hstcp, scalable, htcp, bic, hybla, yeah, veno, westwood, lola, bbr3, prague"
    );
    let error = "bsd".parse::<Profile>().unwrap_err().to_string();
    assert_eq!(error, "'bsd' is not a profile; there are standard, ns3, linux");
}

#[test]
fn only_some_count_marks_or_pace_or_rule_recovery() {
    for algorithm in Algorithm::ALL {
        let mut control = Controller::new(&algorithm.params(Profile::Linux), 1_448, 14_480, 1);
        control.on_established(Some(Nanos(10_000_000)), Nanos::ZERO);
        let ecn = match algorithm {
            Algorithm::Dctcp => EcnUse::Counted,
            Algorithm::Prague => EcnUse::Scalable,
            _ => EcnUse::Classic,
        };
        assert_eq!(control.ecn(), ecn);
        let models = matches!(algorithm, Algorithm::Bbr | Algorithm::Bbr3);
        assert_eq!(control.rules_recovery(), models);
        assert_eq!(control.pacing_rate().is_some(), models || *algorithm == Algorithm::Prague);
    }
}

#[test]
fn each_restarts_with_the_initial_window_and_no_threshold() {
    for algorithm in Algorithm::ALL {
        let mut control = Controller::new(&algorithm.params(Profile::Ns3), MSS as u32, 10 * MSS, 1);
        let congestion = Congestion { in_flight: 10 * MSS, lost: 10 * MSS, delivered: 0, next: 10 * MSS };
        control.on_timeout(&congestion, Nanos(1));
        assert!(control.window() <= MSS, "{algorithm}");
        control.restart(10 * MSS);
        assert_eq!((control.window(), control.slow_start_threshold()), (10 * MSS, u64::MAX), "{algorithm}");
    }
}
