//! Link, network and transport headers of a captured frame.
