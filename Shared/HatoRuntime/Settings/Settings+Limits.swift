public import HatoModel

extension Settings {
    /// The limits that the settings come to; those without a setting keep their defaults.
    public func limits<Root: Limits>(_: Root.Type) -> Root {
        var limits = Root()
        for limit in Root.all where text(limit.name) != nil { limit.set(integer(limit.name), in: &limits) }
        return limits
    }
}
