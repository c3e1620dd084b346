import HatoModel

@testable import HatoFirebase

/// Requests of FCM's interfaces for tests.
struct PushSample {
    static let v1 = "/v1/projects/hato/messages:send"
    static let legacy = "/fcm/send"

    var request: PushRequest

    /// - Parameter credential: the header `Authorization`; nil: none.
    init(_ target: String, method: String = "POST", credential: String? = "Bearer key") throws {
        let headers = credential.map { [(name: "authorization", value: $0)] } ?? []
        guard let request = PushRequest(RESTHead(method: method, target: target, headers: headers)) else {
            throw PushFault.method
        }
        self.request = request
    }

    /// Throws `PushFault`.
    func call(_ body: JSONValue) throws(PushFault) -> PushRequest.Call {
        try request.call(body.encoded, memoryMax: 1 << 20)
    }

    /// The call of a message of FCM HTTP v1.
    static func call(of message: JSONValue, validatesOnly: Bool = false) throws -> PushRequest.Call {
        var body: JSONObject = ["message": message]
        if validatesOnly { body["validate_only"] = true }
        return try PushSample(v1).call(.object(body))
    }

    /// Why a message of FCM HTTP v1 is refused; nil when it is not.
    static func fault(of message: JSONValue) throws -> PushFault? {
        do {
            _ = try call(of: message)
            return nil
        } catch let fault as PushFault { return fault }
    }
}

extension RESTAnswer {
    /// The body as JSON; null where it is none.
    var json: JSONValue { (try? JSONParser.parse(body)) ?? .null }
}
