import HatoModel
import Testing

@testable import HatoFirebase

/// Requests of FCM's interfaces of every wrong form: each becomes one call on one line, or a response.
@Suite struct PushFuzzTests {
    private static let names = [
        "message", "validate_only", "validateOnly", "token", "topic", "condition", "fid", "name", "data",
        "notification", "android", "webpush", "apns", "fcm_options", "fcmOptions", "title", "body", "image", "priority",
        "ttl", "collapse_key", "collapseKey", "payload", "aps", "alert", "headers", "link", "to", "registration_ids",
        "time_to_live", "dry_run", "content_available", "badge", "sound", "auth", "from", "as", "action", "replyToken",
        "type", "transition_type", "title_loc_args", "",
    ]

    private static let texts = [
        "", "t", "/topics/news", "/topics/", "HIGH", "normal", "10", "-1", "3600s", "1.5s", ".s", "inf", "nan", "0x1p3",
        "1e999", "9223372036854775808", "true", "あ", "\u{0}", "\r\n", "\u{2028}", "%", "\"\\",
    ]

    private static let samples = [
        #"{"message":{"token":"t","notification":{"title":"x"},"android":{"ttl":"60s","priority":"high"}}}"#,
        #"{"message":{"topic":"news","data":{"a":"b","type":"c"},"apns":{"payload":{"aps":{"alert":"x"}}}}}"#,
        #"{"message":{"token":"t","webpush":{"fcmOptions":{"link":"l"}}},"validateOnly":true}"#,
        #"{"registration_ids":["a","b"],"data":{"n":1},"time_to_live":60,"priority":"high"}"#,
        #"{"to":"/topics/n","notification":{"title":"x","badge":"2","body_loc_args":["a"]},"dry_run":true}"#,
        #"{"notification":"n","action":"YES","text":"x","replyToken":"r"}"#,
    ]

    private static let results = [
        #"{"notification":"ntf_1","recipients":2}"#, #"{"notification":"ntf_1","recipients":0,"fanOut":true}"#,
        #"{"results":[{"messageId":"m"},{"error":{"code":"messaging/invalid-argument","message":"x"}}]}"#,
        #"{"results":[],"successCount":-1,"failureCount":1e300,"multicastId":"x","canonicalRegistrationTokenCount":0}"#,
        "{}",
    ]

    private func value(_ random: inout SeededInputs, _ depth: Int = 0) -> JSONValue {
        switch random.below(depth > 3 ? 5 : 9) {
        case 0: .null
        case 1: .bool(random.once(in: 2))
        case 2: .number(random.one(of: [0, 1, -1, 0.5, 5, 10, 1e15, 9e18, -9e300]))
        case 3, 4: .string(random.one(of: Self.texts))
        case 5: .array((0..<random.below(4)).map { _ in value(&random, depth + 1) })
        default: object(&random, depth + 1)
        }
    }

    private func object(_ random: inout SeededInputs, _ depth: Int = 0) -> JSONValue {
        var object = JSONObject()
        for _ in 0..<random.below(6) { object[random.one(of: Self.names)] = value(&random, depth + 1) }
        return .object(object)
    }

    /// A sample with other values, or anything.
    private func body(_ random: inout SeededInputs) -> [UInt8] {
        var body: [UInt8]
        if random.once(in: 3) {
            body = object(&random).encoded
        } else {
            let sample = Array(random.one(of: Self.samples).utf8)
            body = ((try? JSONParser.parse(sample)).map { changed($0, &random) } ?? .null).encoded
        }
        if random.once(in: 3) { random.damage(&body) }
        return body
    }

    private func changed(_ value: JSONValue, _ random: inout SeededInputs) -> JSONValue {
        if random.once(in: 8) { return self.value(&random) }
        guard case .object(let object) = value else { return value }
        var changed = JSONObject()
        for member in object.members {
            changed[random.once(in: 12) ? random.one(of: Self.names) : member.name] = self.changed(
                member.value, &random)
        }
        if random.once(in: 4) { changed[random.one(of: Self.names)] = self.value(&random) }
        return .object(changed)
    }

    @Test func everyRequestBecomesOneCallOrAResponse() {
        var methods: Set<String> = []
        let failures = SeededInputs.failures(5_000) { random in
            let target = random.one(of: [PushSample.v1, PushSample.legacy, "/respond"])
            let credential = random.one(of: ["Bearer k", "Bearer k", "key=k", "key=", nil])
            let request = try PushSample(target, credential: credential).request
            let body = body(&random)
            let call: PushRequest.Call
            do throws(PushFault) { call = try request.call(body, memoryMax: 1 << 20) } catch {
                return problem(request.response(to: error)).map { "\(target) \(error): \($0)" }
            }
            methods.insert(call.method)
            let text = String(decoding: body, as: UTF8.self)
            if let problem = problem(request.params(of: call, from: "::1"), of: target) { return "\(text): \(problem)" }
            return problem(response(request, call, &random)).map { "\(text): \($0)" }
        }
        #expect(failures.isEmpty, "\(failures)")
        // A run in which everything is refused would show nothing.
        if SeededInputs.count(5_000) >= 5_000 { #expect(methods.count == 3, "\(methods)") }
    }

    private func problem(_ params: [UInt8], of target: String) -> String? {
        guard !params.contains(0x0A), !params.contains(0x0D) else { return "a line end" }
        // A request is an object around its params.
        guard let object = try? JSONParser.parse(params, depth: JSONParser.depthDefault - 1) else {
            return "no params: \(String(decoding: params, as: UTF8.self))"
        }
        guard object["from"] == "::1", object["as"] == .none else { return "another client" }
        return target == "/respond" || object["auth"] == "k" ? nil : "another caller"
    }

    /// The response to a result, a damaged one or an error.
    private func response(
        _ request: PushRequest, _ call: PushRequest.Call, _ random: inout SeededInputs
    ) -> RESTAnswer {
        if random.once(in: 3) {
            let code = RPCError.Code(rawValue: -32000 - random.below(9))
            let reason = random.one(of: ["invalid_token", "connection_lost", "busy", "too_big", "invalid_ttl", ""])
            let data = object(&random).object ?? [:]
            return request.response(to: RPCError(received: code, message: reason, data: data), of: call)
        }
        var result = Array(random.one(of: Self.results).utf8)
        if random.once(in: 2) { random.damage(&result) }
        return request.response(to: call, result: result)
    }

    private func problem(_ response: RESTAnswer) -> String? {
        guard [200, 400, 401, 403, 404, 405, 409, 429, 500, 501, 503, 504].contains(response.status) else {
            return "status \(response.status)"
        }
        let isJSON = (try? JSONParser.parse(response.body)) != nil
        let type = response.header("content-type") ?? ""
        if type.hasPrefix("application/json") != isJSON { return "a body of another type" }
        let isOneLine = response.headers.allSatisfy { !$0.value.utf8.contains { $0 < 0x20 } }
        return isOneLine ? nil : "a header that is none: \(response.headers)"
    }
}
