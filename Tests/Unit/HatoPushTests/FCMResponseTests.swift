import HatoModel
import Testing

@testable import HatoPush

@Suite struct FCMResponseTests {
    private static let now: Int64 = 1_795_000_000

    private func decision(
        _ status: Int, _ body: String, retryAfter: String? = nil
    ) -> FCMResponse.Decision {
        FCMResponse(
            FCMReceived(status: status, retryAfter: retryAfter, body: Array(body.utf8)), secrets: ["SECRET"],
            now: Self.now
        ).decision
    }

    private func body(_ errorCode: String, _ message: String = "why", badRequest: Bool = false) -> String {
        let fields =
            badRequest
            ? #",{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.data"}]}"#
            : ""
        return #"""
            {"error":{"code":400,"message":"\#(message)","status":"X","details":[{"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(errorCode)"}\#(fields)]}}
            """#
    }

    @Test func aSuccessHasTheNameOfTheMessage() {
        #expect(
            decision(200, #"{"name":"projects/p/messages/0:1"}"#)
                == .outcome(.delivered(DeliveryResponse(status: 200, providerID: "projects/p/messages/0:1"))))
        for garbage in ["", "garbage", "{}", #"{"name":5}"#, #"{"name":""}"#, "[1"] {
            #expect(decision(200, garbage) == .outcome(.delivered(DeliveryResponse(status: 200))))
        }
        let long = String(repeating: "x", count: 1_000)
        #expect(
            decision(200, #"{"name":"\#(long)"}"#)
                == .outcome(.delivered(DeliveryResponse(status: 200, providerID: String(long.prefix(256))))))
    }

    /// The kind of an outcome with its delay.
    private func kind(_ decision: FCMResponse.Decision) -> String {
        switch decision {
        case .accessTokenRefused: "other access token"
        case .outcome(let outcome):
            switch outcome {
            case .delivered: "delivered"
            case .failed(_, let delay): "failed \(delay.map { String($0.components.seconds) } ?? "-")"
            case .postponed: "postponed"
            case .deviceGone(_, let since): "gone \(since.map { String($0) } ?? "-")"
            case .tokenRefused: "token refused"
            case .rejected: "rejected"
            case .providerRefused: "provider refused"
            }
        }
    }

    @Test(arguments: [
        (404, "UNREGISTERED", "gone -"), (400, "UNREGISTERED", "gone -"), (400, "INVALID_ARGUMENT", "rejected"),
        (403, "SENDER_ID_MISMATCH", "token refused"), (429, "QUOTA_EXCEEDED", "failed 60"),
        (503, "UNAVAILABLE", "failed -"), (500, "INTERNAL", "failed -"),
        (401, "THIRD_PARTY_AUTH_ERROR", "failed -"),
        (401, "APNS_AUTH_ERROR", "failed -"), (401, "SOMETHING_NEW", "other access token"),
        (400, "SOMETHING_NEW", "rejected"), (500, "UNSPECIFIED_ERROR", "failed -"),
    ])
    func theErrorCodeDecides(status: Int, errorCode: String, expected: String) {
        #expect(kind(decision(status, body(errorCode))) == expected)
    }

    @Test func onlyTheKeyOfTheProjectIsAMisconfiguration() {
        for (errorCode, expected) in [("THIRD_PARTY_AUTH_ERROR", true), ("UNAVAILABLE", false)] {
            guard case .outcome(.failed(let response, _)) = decision(401, body(errorCode)) else {
                Issue.record("\(errorCode) is tried again")
                continue
            }
            #expect(response.isMisconfiguration == expected)
        }
    }

    @Test func onlyABadRegistrationOfARightMessageIsGone() {
        let message = "The registration token is not a valid FCM registration token"
        #expect(kind(decision(400, body("INVALID_ARGUMENT", message))) == "gone -")
        #expect(kind(decision(400, body("INVALID_ARGUMENT", message, badRequest: true))) == "rejected")
        #expect(kind(decision(400, body("INVALID_ARGUMENT", "Invalid value at 'message.data'"))) == "rejected")
    }

    @Test(arguments: [
        (401, "other access token"), (403, "provider refused"), (404, "provider refused"), (400, "rejected"),
        (413, "rejected"), (429, "failed 60"), (408, "failed -"), (500, "failed -"), (502, "failed -"),
        (504, "failed -"),
        (307, "failed -"),
    ])
    func withoutADetailTheStatusDecides(status: Int, expected: String) {
        let plain = #"{"error":{"code":0,"message":"m","status":"PERMISSION_DENIED"}}"#
        for text in [plain, "garbage", "", #"{"error":{"details":5}}"#] {
            #expect(kind(decision(status, text)) == expected)
        }
    }

    @Test(arguments: [
        (429, "QUOTA_EXCEEDED", "7", 7), (429, "QUOTA_EXCEEDED", "31536000", 3_600), (503, "UNAVAILABLE", "9", 9),
        (503, "UNAVAILABLE", "Wed, 18 Nov 2026 11:06:45 GMT", 5),
    ])
    func fcmSaysWhen(status: Int, errorCode: String, retryAfter: String, seconds: Int) {
        #expect(kind(decision(status, body(errorCode), retryAfter: retryAfter)) == "failed \(seconds)")
    }

    @Test func noSecretIsInAnError() {
        let long = String(repeating: "x", count: 197)
        for text in [body("INTERNAL", "of SECRET"), "of SECRET", long + "SECRET"] {
            guard case .outcome(.failed(let response, _)) = decision(500, text) else {
                Issue.record("no failure")
                return
            }
            #expect(response.error?.contains("SEC") == false && response.status == 500)
        }
        guard case .outcome(.failed(let response, _)) = decision(500, body("INTERNAL", "a\\nb")) else { return }
        #expect(response.error == "FCM failed: a b")
    }
}
