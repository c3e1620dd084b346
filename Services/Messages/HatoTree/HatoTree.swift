/// Decides what a request means for the tree.
///
/// Nothing here knows a clock, a disk or a network: a mutation and what a `TreeReader` shows go in, rows and changes
/// come out (`WritePlanner`), and a path and a `TreeReader` go in and JSON comes out (`NodeReader`).
enum HatoTree {}
