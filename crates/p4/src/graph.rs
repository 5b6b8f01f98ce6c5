//! The steps of a program as what has to go into a stage as one, and what needs what.

use crate::fold::Bundle;
use crate::program::{Gress, Program};
use std::collections::BTreeSet;

/// What goes into a stage as one: a step, or all that a register does.
#[derive(Debug)]
pub(crate) struct Node {
    pub steps: Vec<usize>,
    pub gress: Gress,
    /// The nodes whose results it needs, in the same half of the pipeline.
    pub needs: BTreeSet<usize>,
}

/// The nodes of a program, where the steps of `bundles` that can be one access are one node; of others each step is its own.
pub(crate) fn nodes(program: &Program, bundles: &[Bundle]) -> Vec<Node> {
    let mut node_of: Vec<_> = (0..program.steps.len()).collect();
    let mut join = |steps: &mut dyn Iterator<Item = usize>| {
        let steps: BTreeSet<_> = steps.collect();
        if let Some(&first) = steps.first() {
            steps.into_iter().for_each(|step| node_of[step] = first);
        }
    };
    for register in bundles.iter().map(|bundle| bundle.register).collect::<BTreeSet<_>>() {
        let own: Vec<_> = bundles.iter().filter(|bundle| bundle.register == register).collect();
        if own.iter().all(|bundle| bundle.refused.is_none()) {
            // Also for different packets it is the same memory, and so the same stage.
            join(&mut own.iter().flat_map(|bundle| bundle.steps.iter().copied()));
        } else {
            own.iter().filter(|it| it.refused.is_none()).for_each(|it| join(&mut it.steps.iter().copied()));
        }
    }
    let names: Vec<_> = node_of.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let place = |name: usize| names.iter().position(|other| *other == name).unwrap_or(0);
    let mut nodes: Vec<_> = names
        .iter()
        .map(|name| Node { steps: Vec::new(), gress: program.steps[*name].gress, needs: BTreeSet::new() })
        .collect();
    for step in 0..program.steps.len() {
        let own = place(node_of[step]);
        nodes[own].steps.push(step);
        for need in program.needs(step) {
            let other = place(node_of[need]);
            if other != own && nodes[other].gress == nodes[own].gress {
                nodes[own].needs.insert(other);
            }
        }
    }
    nodes
}

/// For each node, how many stages there are from it to the end of what needs it, itself included; or some node that needs itself.
pub(crate) fn tails(nodes: &[Node]) -> Result<Vec<usize>, usize> {
    let mut tails = vec![0; nodes.len()];
    let mut users = vec![0; nodes.len()];
    nodes.iter().flat_map(|node| &node.needs).for_each(|need| users[*need] += 1);
    let mut ready: Vec<_> = (0..nodes.len()).filter(|node| users[*node] == 0).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        tails[node] += 1;
        for need in &nodes[node].needs {
            tails[*need] = tails[*need].max(tails[node]);
            users[*need] -= 1;
            if users[*need] == 0 {
                ready.push(*need);
            }
        }
    }
    if done == nodes.len() { Ok(tails) } else { Err(users.iter().position(|count| *count > 0).unwrap_or(0)) }
}
