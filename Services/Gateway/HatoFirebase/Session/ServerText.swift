import HatoModel

/// The messages of the server, each one JSON text (spec realtime-database §8.3).
public enum ServerText {
    /// The first message of a session.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - host: the Host of the client's request, which clients use for their next connection.
    ///   - session: the id of the session, a secret.
    public static func hello(at time: Int64, host: String, session: String) -> [UInt8] {
        control("h") { writer in
            writer.beginObject()
            writer.member("ts")
            writer.write(time)
            writer.member("v")
            writer.write("5")
            writer.member("h")
            writer.write(host)
            writer.member("s")
            writer.write(session)
            writer.endObject()
        }
    }

    /// The response to a ping; clients ignore one without the inner `d`.
    public static let pong = control("o") { $0.writeNull() }
    /// What a socket that is to take a polling session over gets first.
    public static let switchOffer = control("a") { $0.write(JSONObject()) }
    /// The last message over polls when a socket takes the session over.
    public static let endOfTransmission = control("n") { $0.write(JSONObject()) }

    /// The client reconnects to `host` at once.
    public static func reset(host: String) -> [UInt8] { control("r") { $0.write(host) } }

    /// The client prints `reason` and stops for good.
    public static func shutdown(_ reason: String) -> [UInt8] { control("s") { $0.write(reason) } }

    /// The reason for which a socket of an unknown namespace is shut down.
    public static let unknownNamespace = """
        Firebase error. Please ensure that you have the URL of your Firebase Realtime Database instance configured \
        correctly.
        """

    /// The end of a token: the client drops it, closes, gets another one and comes back.
    public static let authRevoked = push("ac") { writer in
        writer.member("s")
        writer.write(StatusWords.expiredToken.word)
        writer.member("d")
        writer.write(StatusWords.expiredToken.text)
    }

    /// The response to the request `number`; `data` writes one value.
    static func response(_ number: Int64, _ word: String, data: (inout JSONWriter) -> Void) -> [UInt8] {
        message("d", capacity: 128) { writer in
            writer.member("r")
            writer.write(number)
            writer.member("b")
            writer.beginObject()
            writer.member("s")
            writer.write(word)
            writer.member("d")
            data(&writer)
            writer.endObject()
        }
    }

    /// The response with a text for people.
    static func response(_ number: Int64, _ status: StatusWords) -> [UInt8] {
        response(number, status.word) { $0.write(status.text) }
    }

    /// The response `ok` with a value that is encoded already.
    static func response(_ number: Int64, okWith data: ArraySlice<UInt8>) -> [UInt8] {
        message("d", capacity: 64 + data.count) { writer in
            writer.member("r")
            writer.write(number)
            writer.member("b")
            writer.beginObject()
            writer.member("s")
            writer.write("ok")
            writer.member("d")
            writer.write(encoded: data.span, 0..<data.count)
            writer.endObject()
        }
    }

    /// A message without a request; `body` writes the members of its body.
    static func push(_ action: String, capacity: Int = 128, body: (inout JSONWriter) -> Void) -> [UInt8] {
        message("d", capacity: capacity) { writer in
            writer.member("a")
            writer.write(action)
            writer.member("b")
            writer.beginObject()
            body(&writer)
            writer.endObject()
        }
    }

    private static func control(_ type: String, data: (inout JSONWriter) -> Void) -> [UInt8] {
        message("c", capacity: 160) { writer in
            writer.member("t")
            writer.write(type)
            writer.member("d")
            data(&writer)
        }
    }

    private static func message(_ layer: String, capacity: Int, members: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter(capacity: capacity)
        writer.beginObject()
        writer.member("t")
        writer.write(layer)
        writer.member("d")
        writer.beginObject()
        members(&writer)
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }
}
