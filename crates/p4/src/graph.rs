//! The graph of a program: which steps must be in the same stage, and which steps need which.

use crate::fold::Bundle;
use crate::program::{Program, Register};
use std::collections::{BTreeMap, BTreeSet};

/// What goes into one stage together: a step, or everything that a register does for all packets and in both halves of
/// the pipeline.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub steps: Vec<usize>,
    /// The nodes that must be in earlier stages, for any of its steps.
    pub needs: BTreeSet<usize>,
}

/// The nodes of a program. The steps of a bundle that is one access are one node; every other step is its own node.
pub(crate) fn nodes(program: &Program, bundles: &[Bundle]) -> Vec<Node> {
    let mut node_of: Vec<_> = (0..program.steps.len()).collect();
    let mut join = |steps: &mut dyn Iterator<Item = usize>| {
        let steps: BTreeSet<_> = steps.collect();
        if let Some(&first) = steps.first() {
            steps.into_iter().for_each(|step| node_of[step] = first);
        }
    };
    let mut of_registers: BTreeMap<Register, Vec<&Bundle>> = BTreeMap::new();
    bundles.iter().for_each(|bundle| of_registers.entry(bundle.register).or_default().push(bundle));
    for own in of_registers.into_values() {
        if own.iter().all(|bundle| bundle.is_one_access()) {
            // Even for different packets it is the same memory, and so the same stage.
            join(&mut own.iter().flat_map(|bundle| bundle.steps.iter().copied()));
        } else {
            own.iter().filter(|it| it.is_one_access()).for_each(|it| join(&mut it.steps.iter().copied()));
        }
    }
    let names: BTreeSet<_> = node_of.iter().copied().collect();
    let place: BTreeMap<_, _> = names.into_iter().zip(0..).collect();
    let mut nodes: Vec<_> = place.iter().map(|_| Node::default()).collect();
    for step in 0..program.steps.len() {
        let own = place[&node_of[step]];
        nodes[own].steps.push(step);
        nodes[own].needs.extend(program.needs(step).map(|need| place[&node_of[need]]).filter(|other| *other != own));
    }
    nodes
}

/// The longest chains through each node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    /// Nodes before it in the longest chain.
    pub before: usize,
    /// Nodes after it in the longest chain.
    pub behind: usize,
}

/// For each node, how many nodes are before and after it, each of which needs its own stage. The error is a node that
/// needs itself.
pub(crate) fn chains(nodes: &[Node]) -> Result<Vec<Chains>, usize> {
    let order = order(nodes)?;
    let mut chains = vec![Chains::default(); nodes.len()];
    for &node in &order {
        chains[node].before = nodes[node].needs.iter().map(|need| chains[*need].before + 1).max().unwrap_or(0);
    }
    for &node in order.iter().rev() {
        for need in &nodes[node].needs {
            chains[*need].behind = chains[*need].behind.max(chains[node].behind + 1);
        }
    }
    Ok(chains)
}

/// All nodes, each after the ones that it needs. The error is a node that needs itself.
fn order(nodes: &[Node]) -> Result<Vec<usize>, usize> {
    let mut users = vec![Vec::new(); nodes.len()];
    nodes.iter().enumerate().for_each(|(node, it)| it.needs.iter().for_each(|need| users[*need].push(node)));
    let mut missing: Vec<_> = nodes.iter().map(|node| node.needs.len()).collect();
    let mut order: Vec<_> = (0..nodes.len()).filter(|node| missing[*node] == 0).collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for &user in &users[node] {
            missing[user] -= 1;
            if missing[user] == 0 {
                order.push(user);
            }
        }
    }
    missing.iter().position(|count| *count > 0).map_or(Ok(order), Err)
}
