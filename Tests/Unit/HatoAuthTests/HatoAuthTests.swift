// The tests of this room follow.
