import HatoModel

@testable import HatoRPC

/// A message of a line, read by way of its tree of values.
enum NaiveMessage: Equatable {
    case result(UInt64, JSONValue)
    case error(UInt64, JSONValue)
    case notification(String, String, JSONObject)
    case refusal
    /// No message of the protocol.
    case lie
    /// Refused by a reader of the whole text, and not by a wire.
    case unclear

    init(_ line: [UInt8], depth: Int) {
        do {
            self = Self.message(try JSONParser.parse(line, depth: depth))
        } catch {
            self = [.duplicateMember, .numberTooLarge].contains(error.reason) ? .unclear : .lie
        }
    }

    /// Nil for what is no message.
    init?(_ event: WireEvent) {
        switch event {
        case .result(let id, let text): self = .result(id, Self.value(text))
        case .error(let id, _, let text): self = .error(id, Self.value(text))
        case .notification(let method, let subscription, let members):
            let params = Self.value("{\(members.joined(separator: ","))}").object ?? [:]
            self = .notification(method, subscription, params)
        default: return nil
        }
    }

    private static func value(_ text: String) -> JSONValue { (try? JSONParser.parse(text)) ?? "no JSON" }

    private static func message(_ json: JSONValue) -> NaiveMessage {
        guard let object = json.object, object["method"].map({ $0.string != nil }) ?? true else { return .lie }
        let (method, result, error) = (object["method"]?.string, object["result"], object["error"])
        if let error, error["code"]?.integer == nil { return .lie }
        switch object["id"] {
        case nil:
            guard let method, result == nil, error == nil, var params = object["params"]?.object,
                let subscription = params["subscription"]?.string
            else { return .lie }
            params["subscription"] = nil
            return .notification(method, subscription, params)
        case .null?: return error != nil && result == nil && method == nil ? .refusal : .lie
        case .number(let number)?:
            guard method == nil, let id = UInt64(exactly: number), (result == nil) != (error == nil) else {
                return .lie
            }
            return result.map { .result(id, $0) } ?? error.map { .error(id, $0) } ?? .lie
        default: return .lie
        }
    }
}
