import HatoModel

/// Keeps the payload of a push within its limit: what is worth least goes first.
enum PayloadFitting {
    /// The content when its payload fits; otherwise without its image; otherwise also with its body cut, and then its
    /// title; otherwise also without what the app needs to report what its user does with it; and at last also without
    /// its link. Nil when that is not enough.
    ///
    /// Data of a trigger are as long as what its author writes. Where they leave no space for a text that says
    /// something, their longest values go first, until `triggeredDataBytes` are left. Data of a type stay whole, since
    /// an app acts on all of them or on none.
    ///
    /// - Parameter fits: whether the payload made of a content is within the limit.
    static func fitted(_ content: DeliveryContent, where fits: (DeliveryContent) -> Bool) -> DeliveryContent? {
        guard content.trigger != nil, !content.data.isEmpty, content.data[Notifier.PayloadType.typeField] == nil else {
            return withAllData(content, where: fits)
        }
        if let fitted = shortened(content, where: fits), saysSomething(fitted, of: content) { return fitted }
        var smaller = withoutLongData(content)
        if let fitted = withAllData(smaller, where: fits) { return fitted }
        (smaller.data, smaller.hato.isIncomplete) = ([:], true)
        return withAllData(smaller, where: fits)
    }

    /// Bytes of names and values, as JSON, that data of a trigger may have where not all fits.
    private static let triggeredDataBytes = 2_048
    /// Characters of a cut body that still say something.
    private static let charactersMin = 100

    private static func saysSomething(_ cut: DeliveryContent, of whole: DeliveryContent) -> Bool {
        let isBodyKept = cut.text.body == whole.text.body || (cut.text.body?.count ?? 0) > charactersMin
        return cut.text.title == whole.text.title && isBodyKept
    }

    private static func withoutLongData(_ content: DeliveryContent) -> DeliveryContent {
        var smaller = content
        let sizes = content.data.map { name, value in
            (name: name, bytes: JSONValue.string(name).encoded.count + JSONValue.string(value).encoded.count)
        }
        var bytes = sizes.reduce(0) { $0 + $1.bytes }
        for entry in sizes.sorted(by: { ($1.bytes, $0.name) < ($0.bytes, $1.name) }) where bytes > triggeredDataBytes {
            smaller.data[entry.name] = nil
            smaller.hato.isIncomplete = true
            bytes -= entry.bytes
        }
        return smaller
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
