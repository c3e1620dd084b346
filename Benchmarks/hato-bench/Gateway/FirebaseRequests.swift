import HatoModel

/// What clients of Firebase send for the same work as `ChatRequests`.
enum FirebaseRequests {
    /// A request of the REST interface on a connection that stays open.
    static func rest(_ method: String, _ target: String, _ body: [UInt8] = []) -> [UInt8] {
        let head =
            "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + body
    }

    static func refresh(_ token: [UInt8]) -> [UInt8] {
        let body = Array("grant_type=refresh_token&refresh_token=".utf8) + token
        let head =
            "POST /v1/token?key=bench HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + body
    }

    /// The request of an event stream.
    static func stream(_ target: String) -> [UInt8] {
        Array("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".utf8)
    }

    /// The request of a WebSocket (RFC 6455, section 4.1).
    static let upgrade = Array(
        ("GET /.ws?v=5&ns=hato HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").utf8)

    /// A text as one frame of a client. Its masking key is zero, so that the text can be changed in place.
    static func frame(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        let length: [UInt8] =
            bytes.count < 126
            ? [0x80 | UInt8(bytes.count)] : [0x80 | 126, UInt8(bytes.count >> 8 & 0xff), UInt8(bytes.count & 0xff)]
        return [0x81] + length + [0, 0, 0, 0] + bytes
    }

    /// Asks for the credential to be used from now on.
    static func authenticate(_ token: String) -> String {
        #"{"t":"d","d":{"r":1,"a":"auth","b":{"cred":"\#(token)"}}}"#
    }

    static func listen(_ path: String) -> String { #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"\#(path)","h":""}}}"# }

    /// A post of a message under a key of the client, of the form that SDKs make; `NumberedRequest` puts numbers in
    /// both places.
    static func put(_ room: String, _ message: JSONValue) -> [UInt8] {
        let value = String(decoding: message.encoded, as: UTF8.self)
        let number = String(NumberedRequest.first)
        let path = "/chats/\(room)/messages/-Oposts---\(number)"
        return frame(#"{"t":"d","d":{"r":\#(number),"a":"p","b":{"p":"\#(path)","d":\#(value)}}}"#)
    }
}

/// A request with a number in one or more places, all of the same length.
struct NumberedRequest {
    static let first = 1_000_000_000

    private(set) var bytes: [UInt8]
    private let places: [Int]

    /// - Parameter bytes: contain the digits of `first` where the number belongs.
    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        let digits = Array(String(Self.first).utf8)
        places = bytes.indices.filter { bytes[$0...].starts(with: digits) }
    }

    mutating func set(_ number: Int) {
        for place in places {
            var rest = number
            for digit in (place..<place + 10).reversed() {
                bytes[digit] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
        }
    }
}
