import Foundation
import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import TestFirebase
import Testing

/// What the notifier's metrics say after deliveries.
@Suite(.timeLimit(.minutes(5)))
struct MetricsValues {
    /// The samples of a page, by name and labels.
    private struct Page {
        private var values: [String: Double] = [:]

        init(_ text: String) {
            for line in text.split(separator: "\n") where !line.hasPrefix("#") {
                guard let space = line.lastIndex(of: " ") else { continue }
                values[String(line[..<space])] = Double(line[line.index(after: space)...])
            }
        }

        /// Of the notifier; -1 when it is not shown.
        subscript(name: String) -> Double { values["hato_notifier_\(name)"] ?? -1 }
    }

    private static func error(_ status: Int, _ code: String) -> HTTPResponse {
        let text = """
            {"error":{"code":\(status),"message":"no","status":"\(code)","details":[
            {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\(code)"}]}}
            """
        return HTTPResponse(status: status, body: Array(text.utf8))
    }

    private func shown(by stack: TestStack) async throws -> Page {
        Page(try await stack.notify(Service.Metrics()).text)
    }

    private func register(_ stack: TestStack, _ members: JSONObject, of uid: String) async throws {
        let client = stack.client(.notifier, as: .administrator)
        var params = members
        params["uid"] = .string(uid)
        _ = try await client.call(method: "notifier.devices.register", params: params)
        await client.close()
    }

    private func send(_ stack: TestStack, to uid: String, thread: String? = nil) async throws -> String {
        var send = Notifier.Send(to: .init(uids: [uid]), notification: .init(title: "波平さん"))
        send.options = thread.map { thread in
            var options = Notifier.DeliveryOptions()
            options.thread = thread
            return options
        }
        return try #require(try await stack.notify(send).notification)
    }

    @Test func figuresSayWhatBecameOfDeliveries() async throws {
        let firebase = try await FCMStandIn { message in
            switch message["token"]?.string {
            case "gone": Self.error(404, "UNREGISTERED")
            case "refused": Self.error(403, "PERMISSION_DENIED")
            default: nil
            }
        }
        let status = Mutex(500)
        let failing = try await HTTPListener(host: "127.0.0.1", port: 0) { _ in
            HTTPResponse(status: status.withLock { $0 })
        }
        try await TestStack.run(["--apps-file", firebase.appsFile]) { stack in
            for token in ["phone", "gone", "refused"] {
                try await register(stack, ["platform": "fcm", "token": .string(token)], of: token)
            }
            let url = "http://127.0.0.1:\(failing.port)/"
            try await register(stack, ["platform": "webhook", "url": .string(url)], of: "failing")
            try await checkEnds(stack) { status.withLock { $0 = 204 } }
            try await checkMerging(stack)
            try await checkBreaker(stack)
        }
        await failing.stop()
        await firebase.stop()
    }

    /// Delivered, refused by the provider, and withdrawn while its receiver fails.
    private func checkEnds(_ stack: TestStack, receiverRecovers: () -> Void) async throws {
        let before = try await shown(by: stack)
        #expect(before["deliveries_oldest_seconds"] == 0 && before["deliveries_pending"] == 0)
        #expect(before[#"provider_state{app="default",platform="fcm",state="unchecked"}"#] == 1)
        #expect(before[#"provider_state{app="default",platform="webpush",state="unchecked"}"#] == 1)
        _ = try await send(stack, to: "phone")
        _ = try await send(stack, to: "gone")
        let waiting = try await send(stack, to: "failing")
        try await eventually("the others have ended, and the oldest waits for a second") {
            let page = try await shown(by: stack)
            return page["deliveries_pending"] == 1 && page["deliveries_oldest_seconds"] >= 1
                && page["attempts_total{platform=\"fcm\",result=\"gone\"}"] == 1
                && page["attempts_refused_total{platform=\"webhook\",reason=\"500\"}"] >= 1
        }
        let page = try await shown(by: stack)
        #expect(page["notifications_accepted_total"] == 3 && page["deliveries_pending"] == 1)
        #expect(page[#"deliveries_total{outcome="delivered"}"#] == 1)
        #expect(page[#"deliveries_total{outcome="dropped"}"#] == 1)
        #expect(page[#"deliveries_undelivered_total{outcome="dropped",reason="device_gone"}"#] == 1)
        #expect(page[#"attempts_total{platform="fcm",result="delivered"}"#] == 1)
        #expect(page[#"attempts_total{platform="fcm",result="gone"}"#] == 1)
        #expect(page[#"attempts_refused_total{platform="fcm",reason="UNREGISTERED"}"#] == 1)
        #expect(page[#"attempts_refused_total{platform="webhook",reason="500"}"#] >= 1)
        #expect(page[#"devices_removed_total{reason="gone"}"#] == 1)
        #expect(page["accepted_to_delivered_seconds_count"] == 1)
        #expect(page[#"provider_state{app="default",platform="fcm",state="ready"}"#] == 1)
        #expect(page[#"provider_state{app="default",platform="fcm",state="unchecked"}"#] == 0)
        _ = try await stack.notify(Notifier.Withdraw(notification: waiting))
        // It gets the withdrawal.
        receiverRecovers()
        try await eventually("it is withdrawn") {
            let page = try await shown(by: stack)
            return page["deliveries_pending"] == 0 && page["deliveries_oldest_seconds"] == 0
                && page[#"deliveries_undelivered_total{outcome="dropped",reason="withdrawn"}"#] == 1
                && page["notifications_withdrawn_total"] >= 1
        }
    }

    /// More of a thread than a device is sent one by one.
    private func checkMerging(_ stack: TestStack) async throws {
        let before = try await shown(by: stack)
        let delivered = #"deliveries_total{outcome="delivered"}"#
        let coalesced = #"deliveries_undelivered_total{outcome="dropped",reason="coalesced"}"#
        for _ in 0..<14 { _ = try await send(stack, to: "phone", thread: "c1") }
        try await stack.settled()
        let page = try await shown(by: stack)
        #expect(page[coalesced] > before[coalesced])
        #expect(page[delivered] + page[coalesced] == before[delivered] + before[coalesced] + 14)
        #expect(page[#"deliveries_held_total{reason="rate"}"#] > 0)
    }

    private func checkBreaker(_ stack: TestStack) async throws {
        #expect(try await shown(by: stack)["provider_queues_waiting"] == 0)
        _ = try await send(stack, to: "refused")
        let paused = #"provider_state{app="default",platform="fcm",state="paused"}"#
        try await eventually("it is paused") { try await shown(by: stack)[paused] == 1 }
        let page = try await shown(by: stack)
        #expect(page["provider_queues_waiting"] == 1)
        #expect(page[#"provider_state{app="default",platform="fcm",state="ready"}"#] == 0)
        #expect(page[#"attempts_total{platform="fcm",result="refused"}"#] >= 1)
        #expect(page[#"attempts_refused_total{platform="fcm",reason="PERMISSION_DENIED"}"#] >= 1)
    }
}
