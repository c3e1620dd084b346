import HatoModel

/// What is read from the texts of native results and notifications; nil where a text is not what the protocol says.
enum NativeResult {
    /// The text of the member `name`.
    static func member(_ name: StaticString, of text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard var members = TrustedMembers(text) else { return nil }
        while let member = members.next() {
            if member.name.equals(name) { return member.value }
        }
        return nil
    }

    /// The member `name` as a text.
    static func text(_ name: StaticString, of text: ArraySlice<UInt8>) -> String? {
        guard let member = member(name, of: text), case .string(let text)? = try? PassedText.value(member) else {
            return nil
        }
        return text
    }

    /// The result of `session.authenticate`.
    static func session(_ text: ArraySlice<UInt8>) -> Session.Authenticate.Result? {
        guard let json = try? PassedText.value(text) else { return nil }
        return try? Session.Authenticate.decodeResult(json)
    }

    /// The result of `messages.listen`.
    struct Listen {
        let subscription: String
        /// Whether no first event comes.
        let isUnchanged: Bool
        /// The `d` of the response.
        let warnings: ArraySlice<UInt8>

        init?(_ text: ArraySlice<UInt8>) {
            guard let subscription = NativeResult.text("subscription", of: text) else { return nil }
            self.subscription = subscription
            isUnchanged = NativeResult.member("unchanged", of: text)?.equals("true") == true
            let hasWarning = NativeResult.text("warning", of: text) == Messages.Listen.Warning.noIndex.rawValue
            warnings = Array((hasWarning ? #"{"w":["no_index"]}"# : "{}").utf8)[...]
        }
    }
}
