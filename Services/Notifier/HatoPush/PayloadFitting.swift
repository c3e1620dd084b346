import HatoModel

/// Keeps the payload of a push within its limit: what is worth least goes first.
enum PayloadFitting {
    /// The content when its payload fits; otherwise without its image; otherwise also with its body cut, and then its
    /// title; otherwise also without what the app needs to report what its user does with it; and at last also without
    /// its link. When that is not enough, the longest values of its data are left out, as few as possible, and all else
    /// is tried again; data of a type stay whole, since an app acts on all of them or on none. Nil when nothing fits.
    ///
    /// - Parameter fits: whether the payload made of a content is within the limit.
    static func fitted(_ content: DeliveryContent, where fits: (DeliveryContent) -> Bool) -> DeliveryContent? {
        if let fitted = withAllData(content, where: fits) { return fitted }
        guard content.data[Notifier.PayloadType.typeField] == nil else { return nil }
        let sizes = content.data.map { (name: $0.key, bytes: JSONValue.string($0.value).encoded.count) }
        let names = sizes.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }.map(\.name)
        func without(_ count: Int) -> DeliveryContent? {
            var smaller = content
            for name in names.prefix(count) { smaller.data[name] = nil }
            smaller.hato.isIncomplete = true
            return withAllData(smaller, where: fits)
        }
        // Invariant: without `low` values it does not fit, and without `high` of them it does, or there are no more.
        var (low, high) = (0, names.count)
        guard high > 0, var fitted = without(high) else { return nil }
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if let shorter = without(middle) { (high, fitted) = (middle, shorter) } else { low = middle }
        }
        return fitted
    }

    private static func withAllData(
        _ content: DeliveryContent, where fits: (DeliveryContent) -> Bool
    ) -> DeliveryContent? {
        var smaller = content
        if let fitted = shortened(smaller, where: fits) { return fitted }
        if content.hato.id != nil || content.hato.reply != nil {
            (smaller.hato.id, smaller.hato.reply) = (nil, nil)
            if let fitted = shortened(smaller, where: fits) { return fitted }
        }
        guard content.appearance.link != nil else { return nil }
        smaller.appearance.link = nil
        return shortened(smaller, where: fits)
    }

    private static func shortened(
        _ content: DeliveryContent, where fits: (DeliveryContent) -> Bool
    ) -> DeliveryContent? {
        if fits(content) { return content }
        var smaller = content
        smaller.appearance.image = nil
        if content.appearance.image != nil, fits(smaller) { return smaller }
        for place in [\DeliveryContent.text.body, \DeliveryContent.text.title] {
            guard let text = smaller[keyPath: place], !text.isEmpty else { continue }
            let cut = TextCutting.cut(text) { shorter in
                var candidate = smaller
                candidate[keyPath: place] = shorter
                return fits(candidate)
            }
            smaller[keyPath: place] = cut ?? "…"
            if cut != nil { return smaller }
        }
        return nil
    }
}
