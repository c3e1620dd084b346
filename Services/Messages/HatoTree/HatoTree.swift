/// Decides what a request means for the tree.
///
/// This module uses no clock, disk or network: `WritePlanner` turns a mutation and a `TreeReader` into rows and
/// changes, and `NodeReader` turns a path and a `TreeReader` into JSON.
enum HatoTree {}
