//! Scenario files: links, disciplines, flows, meters, duration and seed, as typed values.
