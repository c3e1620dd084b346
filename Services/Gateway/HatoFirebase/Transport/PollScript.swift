/// The texts of the responses to polls: scripts that call the client's functions (spec realtime-database §8.9).
public enum PollScript {
    /// The id and the password of a polling session: two secrets that stand in scripts and addresses.
    public struct Secrets: Sendable, Hashable {
        /// The id, by which the session is found.
        public let id: String
        /// The password.
        public let password: String

        /// Nil unless both are letters, digits, `-` and `_`: other characters could end the text they stand in.
        public init?(id: String, password: String) {
            for text in [id, password] {
                guard !text.isEmpty, text.utf8.allSatisfy(PollScript.isPlain) else { return nil }
            }
            self.id = id
            self.password = password
        }
    }

    /// The first response: the functions that later ones call, the secrets and the first messages.
    ///
    /// - Parameters:
    ///   - callback: the number of the client's callbacks.
    ///   - messages: JSON texts.
    public static func start(callback: Int, _ secrets: Secrets, _ messages: [[UInt8]]) -> [UInt8] {
        let functions = [("pLPCommand", "c, a1, a2, a3, a4"), ("pRTLPCB", "pN, data")].map { name, arguments in
            let function = "parent.window[\"\(name)\(callback)\"]"
            return "function \(name)(\(arguments)) { \(function) && \(function)(\(arguments)); }\n"
        }
        let command = "pLPCommand('start','\(secrets.id)','\(secrets.password)');\n"
        return Array((functions.joined() + command).utf8) + response(0, messages)
    }

    /// The response `number` of a session.
    public static func response(_ number: Int, _ messages: [[UInt8]]) -> [UInt8] {
        var script = Array("pRTLPCB(\(number),[".utf8)
        script.reserveCapacity(script.count + 8 + messages.reduce(0) { $0 + $1.count + 1 })
        for (index, message) in messages.enumerated() {
            if index > 0 { script.append(UInt8(ascii: ",")) }
            append(message, to: &script)
        }
        script.append(contentsOf: Array("]);\n".utf8))
        return script
    }

    /// The client closes at once.
    public static let close = Array("pLPCommand('close');\n".utf8)

    /// The client closes when it has handled the response `number`; at once for 0, which clients take for no number.
    public static func close(after number: Int) -> [UInt8] { Array("pLPCommand('close',\(number));\n".utf8) }

    /// The page in a frame that reports that its page has gone, so that the session ends at once.
    public static func leavingPage(_ secrets: Secrets) -> [UInt8] {
        Array(
            """
            <!DOCTYPE html>
            <html><head><meta charset="utf-8"></head><body><script>
            (function () {
              var url = "/.lp?disconn=t&id=\(secrets.id)&pw=\(secrets.password)", hasLeft = false;
              function leave() {
                if (hasLeft) { return; }
                hasLeft = true;
                try { fetch(url, { keepalive: true }); } catch (e) { (new Image()).src = url; }
              }
              window.addEventListener("pagehide", leave);
              window.addEventListener("unload", leave);
            })();
            </script></body></html>

            """.utf8)
    }

    fileprivate static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// U+2028 and U+2029 end a line in older scripts, also in a string; in JSON they stand in strings only. A `<` could
    /// begin an end tag where a browser shows the script as a page.
    private static func append(_ message: [UInt8], to script: inout [UInt8]) {
        var copied = 0
        for index in message.indices {
            let escape: String
            let length: Int
            switch message[index] {
            case 0xE2
            where index + 2 < message.count && message[index + 1] == 0x80 && message[index + 2] & 0xFE == 0xA8:
                (escape, length) = (message[index + 2] == 0xA8 ? "\\u2028" : "\\u2029", 3)
            case UInt8(ascii: "<"): (escape, length) = ("\\u003c", 1)
            default: continue
            }
            script.append(contentsOf: message[copied..<index])
            script.append(contentsOf: Array(escape.utf8))
            copied = index + length
        }
        script.append(contentsOf: message[copied...])
    }
}
