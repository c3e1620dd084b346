/// Finds what a locale has among several (RFC 4647, lookup).
enum LocaleTag {
    /// The value of the locale, else of a shorter one: `zh-hant-tw`, then `zh-hant`, then `zh`. Nil without any.
    static func find<Value>(_ locale: String, in values: [String: Value]) -> Value? {
        guard !values.isEmpty else { return nil }
        let values = values.sorted { $0.key < $1.key }
        var tag = normalised(locale)[...]
        while !tag.isEmpty {
            if let found = values.first(where: { normalised($0.key) == tag }) { return found.value }
            tag = tag[..<(tag.lastIndex(of: "-") ?? tag.startIndex)]
        }
        return nil
    }

    /// `ja_JP` and `ja-jp` are the same.
    private static func normalised(_ locale: String) -> String {
        locale.lowercased().replacing("_", with: "-")
    }
}
