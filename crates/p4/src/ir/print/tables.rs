//! Tables: those whose entries a control plane changes, and those whose entries stay.

use super::expression::{literal, operand_text, width_of};
use super::{Architecture, Printer};
use crate::ir::table::ActionTable;
use crate::ir::variable::{Operand, ones};

impl Printer<'_> {
    /// The tables, each with the action that gives an entry's values to variables. Entries come from the control plane.
    pub(super) fn tables(&mut self) {
        let (program, names, uses) = (self.program, self.names(), self.uses());
        for table in uses.tables.iter().map(|table| &program.tables[*table]) {
            let results: Vec<_> = table.results.iter().map(|result| &program.variables[result.0]).collect();
            let parameters: Vec<_> =
                results.iter().map(|it| format!("bit<{}> {}_of_entry", it.bits, it.name)).collect();
            self.line("");
            self.line(&format!("// {}.", table.about));
            self.line(&format!("action set_{}({}) {{", table.name, parameters.join(", ")));
            for (result, info) in table.results.iter().zip(&results) {
                self.line(&format!("{} = {}_of_entry;", names.variable(*result), info.name));
            }
            self.line("}");
            self.line(&format!("table {} {{", table.name));
            if !table.keys.is_empty() {
                self.line("key = {");
                let kind = table.entries.kind();
                for key in &table.keys {
                    self.key(*key, kind);
                }
                self.line("}");
            }
            self.line("actions = {");
            self.line(&format!("set_{};", table.name));
            self.line("}");
            let values: Vec<_> =
                table.otherwise.iter().zip(&results).map(|(value, it)| literal(*value, it.bits)).collect();
            self.line(&format!("default_action = set_{}({});", table.name, values.join(", ")));
            if !table.keys.is_empty() {
                // Where there are none yet, the control plane adds some.
                let keys = table.keys.iter().filter_map(|key| width_of(program, *key)).sum::<u32>();
                let size = if table.entries.is_empty() { 1024.min(1 << keys.min(10)) } else { table.entries.len() };
                self.line(&format!("size = {size};"));
            } else if self.architecture == Architecture::Tna {
                self.line("size = 1;");
            }
            self.line("}");
        }
        uses.choices.iter().for_each(|table| self.choice(&program.choices[*table]));
    }

    /// A key of a table. The control plane of Tofino takes the name of the variable. The expression of a slice is no name, and that of an input is another one.
    fn key(&mut self, key: Operand, kind: &str) {
        let own = key.variable().map_or("", |variable| &self.program.variables[variable.0].name);
        let text = operand_text(&self.names(), key, 0);
        let name = match self.architecture {
            Architecture::Tna if text != own => format!(" @name(\"{own}\")"),
            _ => String::new(),
        };
        self.line(&format!("{text}: {kind}{name};"));
    }

    /// A table whose entries choose what is done. They do not change.
    fn choice(&mut self, table: &ActionTable) {
        let program = self.program;
        self.line("");
        self.line(&format!("// {}.", table.about));
        for action in &table.actions {
            self.line(&format!("action {}() {{", action.name));
            self.in_action = true;
            self.statements(&action.statements);
            self.in_action = false;
            self.line("}");
        }
        self.line(&format!("table {} {{", table.name));
        self.line("key = {");
        for (number, key) in table.keys.iter().enumerate() {
            let all = ones(width_of(program, *key).unwrap_or(0));
            let kind = table.kind(number, all);
            self.key(*key, kind);
        }
        self.line("}");
        self.line("actions = {");
        table.actions.iter().for_each(|action| self.line(&format!("{};", action.name)));
        self.line("NoAction;");
        self.line("}");
        self.line("const default_action = NoAction();");
        self.line("const entries = {");
        let widths: Vec<_> = table.keys.iter().map(|key| width_of(program, *key).unwrap_or(0)).collect();
        for (ranges, action) in &table.entries {
            let key = |((low, high), bits): (&(u64, u64), &u32)| match (low, high) {
                (low, high) if low == high => literal(*low, *bits),
                (0, high) if *high == ones(*bits) => "_".to_owned(),
                (low, high) => format!("{} .. {}", literal(*low, *bits), literal(*high, *bits)),
            };
            let keys: Vec<_> = ranges.iter().zip(&widths).map(key).collect();
            let keys = if keys.len() == 1 { keys.concat() } else { format!("({})", keys.join(", ")) };
            self.line(&format!("{keys}: {}();", table.actions[*action].name));
        }
        self.line("}");
        if self.architecture == Architecture::Tna {
            self.line(&format!("size = {};", table.entries.len()));
        }
        self.line("}");
    }
}
