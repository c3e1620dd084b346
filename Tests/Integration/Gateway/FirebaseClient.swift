import HatoModel
import HatoRPC

/// A client of Firebase, whatever carries its messages.
protocol FirebaseClient {
    func send(_ text: String) throws
    /// The next message; nil when the server closes.
    func message() throws -> JSONValue?
    /// Ends the connection without a word.
    func cut()
}

extension FirebaseSocket: FirebaseClient {}

/// How a client reaches the gateway.
enum FirebaseTransport: String, CaseIterable {
    case socket, polls
    /// A socket takes over after the first response.
    case switched
}

extension FirebaseClient {
    /// Sends a request.
    func request(_ number: Int, _ action: String, _ body: JSONValue) throws {
        let request: JSONValue = ["r": .number(Double(number)), "a": .string(action), "b": body]
        try send(EncodedJSON(["t": "d", "d": request]).text)
    }

    /// Reads up to the response to a request, and returns its body.
    func response(to number: Int) throws -> JSONValue? {
        while let message = try message() {
            if message["d"]?["r"] == .number(Double(number)) { return message["d"]?["b"] }
        }
        return nil
    }
}
