import HatoModel

/// Keeps the payload of a push within its limit: what is worth least goes first.
enum PayloadFitting {
    /// The content when its payload fits; otherwise without its image; otherwise also with its body cut, and then its
    /// title; otherwise also without what the app needs to report what its user does with it; and at last also without
    /// its link. Nil when that is not enough.
    ///
    /// - Parameter fits: whether the payload made of a content is within the limit.
    static func fitted(_ content: DeliveryContent, where fits: (DeliveryContent) -> Bool) -> DeliveryContent? {
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
