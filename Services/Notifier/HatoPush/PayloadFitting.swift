import HatoModel

/// Keeps the payload of a push within its limit: what is worth least goes first.
enum PayloadFitting {
    /// The content when its payload fits; otherwise without its image; otherwise also with its body cut, or its title
    /// where that is the only text; and at last also without what the app needs to report what its user does with it.
    /// Nil when that is not enough.
    ///
    /// - Parameter fits: whether the payload made of a content is within the limit.
    static func fitted(_ content: DeliveryContent, where fits: (DeliveryContent) -> Bool) -> DeliveryContent? {
        if let fitted = shortened(content, where: fits) { return fitted }
        guard content.hato.id != nil || content.hato.reply != nil else { return nil }
        var silent = content
        (silent.hato.id, silent.hato.reply) = (nil, nil)
        return shortened(silent, where: fits)
    }

    private static func shortened(
        _ content: DeliveryContent, where fits: (DeliveryContent) -> Bool
    ) -> DeliveryContent? {
        if fits(content) { return content }
        var smaller = content
        smaller.appearance.image = nil
        if content.appearance.image != nil, fits(smaller) { return smaller }
        let place: WritableKeyPath<DeliveryContent, String?> =
            content.text.body?.isEmpty == false ? \.text.body : \.text.title
        guard let text = smaller[keyPath: place], !text.isEmpty else { return nil }
        let cut = TextCutting.cut(text) { shorter in
            var candidate = smaller
            candidate[keyPath: place] = shorter
            return fits(candidate)
        }
        guard let cut else { return nil }
        smaller[keyPath: place] = cut
        return smaller
    }
}
