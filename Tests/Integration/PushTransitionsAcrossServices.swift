import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

/// The article's two screens, from the payload that a server sends to what an app does with it.
@Suite("Firebaseを利用したプッシュ通知のカスタムデータの解釈(その2)", .timeLimit(.minutes(10)))
struct PushTransitionsAcrossServices {
    private struct SearchResultsList: PushTransition, Hashable {
        static let payloadType = Notifier.PayloadType(
            type: "search_results_list", required: ["search_keyword": .string, "order": .string])
        var keyword: String
        var order: String

        init(_ values: PayloadValues) throws(PayloadError) {
            keyword = try values.text("search_keyword")
            order = try values.text("order")
        }
    }

    private struct ProductDetail: PushTransition, Hashable {
        static let payloadType = Notifier.PayloadType(type: "product_detail", required: ["product_id": .id])
        var id: String

        init(_ values: PayloadValues) throws(PayloadError) { id = try values.text("product_id") }
    }

    private static let list: JSONObject = [
        "transition_type": "search_results_list", "search_keyword": "傘", "order": "new",
    ]
    private static let product: JSONObject = ["transition_type": "product_detail", "product_id": "p-1"]
    /// Both, with the fields that each must have.
    private static let payloads = [(list, ["search_keyword", "order"]), (product, ["product_id"])]

    /// A payload without one of its fields, and with an empty one.
    private static func incomplete(_ payload: JSONObject, _ fields: [String]) -> [(JSONObject, field: String)] {
        fields.flatMap { field in
            var (without, empty) = (payload, payload)
            (without[field], empty[field]) = (nil, "")
            return [(without, field), (empty, field)]
        }
    }

    // MARK: The app

    /// The screen that the app opens for a payload. Throws when it opens none.
    private func screen(_ payload: JSONObject) throws(PayloadError) -> String {
        switch try PushTransitions([SearchResultsList.self, ProductDetail.self]).decode(payload) {
        case let list as SearchResultsList: "検索結果 \(list.keyword) \(list.order)"
        case let product as ProductDetail: "商品詳細 \(product.id)"
        default: throw .invalidType
        }
    }

    private func thrown(_ payload: JSONObject) -> PayloadError? {
        do throws(PayloadError) {
            _ = try screen(payload)
            return nil
        } catch { return error }
    }

    // MARK: The server

    /// The calls that take a payload.
    private enum Way: CaseIterable { case send, sendToDevice, trigger }

    /// Gives the notifier a payload for a phone with the token `phone`; returns the error.
    private func refusal(
        _ payload: JSONObject, by way: Way, _ uid: String, _ client: RPCClient
    ) async throws -> RPCError? {
        let shown: JSONValue = ["title": "新着商品"]
        var data = payload
        if way != .sendToDevice { data["transition_type"] = nil }
        var params: JSONObject
        let method: String
        switch way {
        case .send:
            (method, params) = ("notifier.send", ["to": ["uids": [.string(uid)]], "notification": shown])
            (params["type"], params["data"]) = (payload["transition_type"], .object(data))
        case .sendToDevice:
            method = "notifier.sendToDevice"
            params = ["token": "phone", "payload": ["notification": shown, "data": .object(data)]]
        case .trigger:
            method = "notifier.triggers.set"
            params = [
                "id": "new", "pattern": "/new/{id}", "on": ["created"], "recipients": ["uids": [.string(uid)]],
                "notification": shown,
            ]
            (params["type"], params["data"]) = (payload["transition_type"], .object(data))
        }
        do {
            _ = try await client.call(method: method, params: params)
            return nil
        } catch let error as RPCError { return error }
    }

    /// Gives the notifier each wrong payload in each way.
    private func giveWrongPayloads(_ uid: String, _ client: RPCClient) async throws {
        for (way, (payload, fields)) in Way.allCases.flatMap({ way in Self.payloads.map { (way, $0) } }) {
            for (wrong, field) in Self.incomplete(payload, fields) {
                let error = try await refusal(wrong, by: way, uid, client)
                #expect(error?.code == .invalidArgument && error?.reason == "invalidData", "\(way) \(wrong)")
                #expect(error?.data["field"] == .string(field), "\(way) \(wrong)")
                #expect(thrown(wrong) == .invalidData(field: field))
            }
            for field in fields {
                // Data are texts: the params themselves are wrong.
                var number = payload
                number[field] = 1
                let error = try await refusal(number, by: way, uid, client)
                #expect(error?.code == .invalidParams, "\(way) \(number)")
                #expect(error?.data["parameter"]?.string?.hasSuffix("data.\(field)") == true, "\(way) \(number)")
                #expect(thrown(number) == .invalidData(field: field))
            }
            var unknown = payload
            unknown["transition_type"] = "cart"
            let error = try await refusal(unknown, by: way, uid, client)
            #expect(error?.code == .invalidArgument && error?.reason == "invalidType", "\(way) \(unknown)")
            #expect(thrown(unknown) == .invalidType)
            unknown["transition_type"] = nil
            #expect(thrown(unknown) == .invalidType)
        }
    }

    @Test func searchResultsListAndProductDetailAreDecodedOrNothingHappens() async throws {
        try await withFirebase { stack, firebase in
            let (writer, user) = (try await stack.newUser(), try await stack.newUser())
            let client = stack.client(.notifier, as: .administrator)
            var register = Notifier.Devices.Register(platform: .fcm)
            register.token = "phone"
            _ = try await stack.call(register, of: .notifier, as: .user(idToken: user.idToken))
            for type in [SearchResultsList.payloadType, ProductDetail.payloadType] {
                _ = try await client.call(Notifier.Types.Set(type))
            }
            try await giveWrongPayloads(user.uid, client)
            #expect(try await client.call(Notifier.Triggers.List()).triggers.isEmpty)

            // What is in the tree is known only when it is written.
            for (payload, fields) in Self.payloads {
                let type = try #require(payload["transition_type"]?.string)
                var trigger = Notifier.Triggers.Set(
                    id: type, pattern: try FeedPattern("/\(type)/{id}"), recipients: .init(uids: [user.uid]),
                    notification: .init(title: "新着商品"))
                trigger.type = type
                trigger.data = Dictionary(uniqueKeysWithValues: fields.map { ($0, "{after.\($0)}") })
                _ = try await client.call(trigger)
                for (wrong, _) in Self.incomplete(payload, fields) {
                    try await stack.push("/\(type)", .object(wrong), as: writer)
                }
            }

            // The first pushes are those of payloads that are right.
            var screens: [String] = []
            func expect(_ payload: JSONObject) async throws {
                screens.append(try screen(payload))
                try await eventually("the push") { firebase.messages.count >= screens.count }
            }
            for (payload, _) in Self.payloads {
                for way in [Way.send, .sendToDevice] {
                    #expect(try await refusal(payload, by: way, user.uid, client) == nil)
                    try await expect(payload)
                }
                try await stack.push("/\(payload["transition_type"]?.string ?? "")", .object(payload), as: writer)
                try await expect(payload)
            }
            try await stack.settled()
            let data = firebase.messages(to: "phone").map { $0["data"]?.object ?? [:] }
            #expect(try data.map(screen) == screens && firebase.messages.count == screens.count)
            #expect(screens.first == "検索結果 傘 new" && screens.last == "商品詳細 p-1")
            let metrics = try await client.call(Service.Metrics()).text
            #expect(metrics.contains("\nhato_notifier_changes_ill_typed_total 6\n"))
            await client.close()
        }
    }
}
