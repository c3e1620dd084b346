import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import Testing

/// The article's two screens, from the payload that a server sends to what an app does with it.
@Suite("Firebaseを利用したプッシュ通知のカスタムデータの解釈(その2)", .timeLimit(.minutes(5)))
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

    private let transitions = PushTransitions([SearchResultsList.self, ProductDetail.self])

    /// What the app throws; nil when it opens a screen.
    private func thrown(_ payload: JSONObject) -> PayloadError? {
        do throws(PayloadError) {
            _ = try transitions.decode(payload)
            return nil
        } catch { return error }
    }

    /// Sends a payload as it stands; returns the error.
    private func refusal(_ client: RPCClient, _ uid: String, _ payload: JSONObject) async throws -> RPCError? {
        var data = JSONObject()
        for member in payload.members where member.name != "transition_type" { data[member.name] = member.value }
        var params: JSONObject = [
            "to": ["uids": [.string(uid)]], "notification": ["title": "新着商品"], "data": .object(data),
        ]
        params["type"] = payload["transition_type"]
        do {
            _ = try await client.call(method: "notifier.send", params: params)
            return nil
        } catch let error as RPCError { return error }
    }

    @Test func searchResultsListAndProductDetailAreDecodedOrNothingHappens() async throws {
        try await TestStack.run { stack in
            let user = try await stack.newUser()
            let received = Mutex<[JSONObject]>([])
            let receiver = try await HTTPListener(host: "127.0.0.1", port: 0) { request in
                let data = (try? JSONParser.parse(request.body))?["data"]?["data"]?.object
                received.withLock { $0.append(data ?? [:]) }
                return HTTPResponse(status: 204)
            }
            let devices = stack.client(.notifier)
            _ = try await devices.call(
                Notifier.Devices.Register(url: "http://127.0.0.1:\(receiver.port)/hook"), credential: user.idToken)
            await devices.close()
            let client = stack.client(.notifier, as: .administrator)
            for type in [SearchResultsList.payloadType, ProductDetail.payloadType] {
                _ = try await client.call(Notifier.Types.Set(type))
            }

            let list: JSONObject = ["transition_type": "search_results_list", "search_keyword": "傘", "order": "new"]
            let product: JSONObject = ["transition_type": "product_detail", "product_id": "p-1"]
            for (payload, fields) in [(list, ["search_keyword", "order"]), (product, ["product_id"])] {
                for field in fields {
                    var missing = JSONObject()
                    for member in payload.members where member.name != field { missing[member.name] = member.value }
                    let error = try await refusal(client, user.uid, missing)
                    #expect(error?.code == .invalidArgument && error?.reason == "invalidData", "\(field)")
                    #expect(error?.data["field"] == .string(field))
                    #expect(thrown(missing) == .invalidData(field: field))

                    var empty = payload
                    empty[field] = ""
                    let second = try await refusal(client, user.uid, empty)
                    #expect(second?.code == .invalidArgument && second?.reason == "invalidData", "\(field)")
                    #expect(second?.data["field"] == .string(field))
                    #expect(thrown(empty) == .invalidData(field: field))

                    // No text at all: params of `send` are of one JSON type.
                    var number = payload
                    number[field] = 1
                    #expect(try await refusal(client, user.uid, number)?.code == .invalidParams, "\(field)")
                    #expect(thrown(number) == .invalidData(field: field))
                }
                var unknown = payload
                unknown["transition_type"] = "cart"
                #expect(try await refusal(client, user.uid, unknown)?.reason == "invalidType")
                #expect(thrown(unknown) == .invalidType)
            }
            #expect(thrown(["product_id": "p-1"]) == .invalidType)
            #expect(try await client.call(Notifier.Stats()).pending == 0)

            for payload in [list, product] { #expect(try await refusal(client, user.uid, payload) == nil) }
            try await eventually("nothing waits") {
                try await client.call(Notifier.Stats()).pending == 0 && received.withLock { $0.count } >= 2
            }
            // Only the right ones arrive, and each opens its screen.
            let payloads = received.withLock { $0 }
            #expect(payloads.count == 2)
            let first = try payloads.first.map { try transitions.decode($0) }
            #expect((first as? SearchResultsList)?.keyword == "傘")
            #expect((first as? SearchResultsList)?.order == "new")
            let second = try payloads.last.map { try transitions.decode($0) }
            #expect((second as? ProductDetail)?.id == "p-1")
            await client.close()
            await receiver.stop()
        }
    }
}
