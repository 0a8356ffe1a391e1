//! Walks a model.

use stateright::Checker;
use stateright::HasDiscoveries;
use stateright::Model;
use std::fmt::Debug;
use std::hash::Hash;

/// Walks a world to its end: what must hold always does, and the samples happen.
pub(crate) fn walk<M>(name: &str, world: M, always: &[&'static str], samples: &[&'static str])
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = world.checker().threads(1).spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    for property in always {
        if let Some(path) = checker.discovery(property) {
            let last = path.last_state();
            panic!("{property}: {last:#?} after {:?}", path.clone().into_actions());
        }
    }
    for sample in samples {
        checker.assert_any_discovery(sample);
    }
}

/// Walks a world with a fault until a property fails.
pub(crate) fn find<M>(fault: impl Debug, world: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let until = HasDiscoveries::AnyOf([property].into());
    let checker = world.checker().threads(1).finish_when(until).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{fault:?} is not found"));
    println!("{fault:?}: {} states, {property}", checker.unique_state_count());
    println!("{:?}", path.into_actions());
}
