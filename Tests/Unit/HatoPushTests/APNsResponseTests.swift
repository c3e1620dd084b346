import HatoModel
import NIOHTTP1
import Testing

@testable import HatoPush

@Suite struct APNsResponseTests {
    private static let now: Int64 = 1_795_000_000_000

    private func response(_ status: Int, _ body: String = "", _ headers: HTTPHeaders = [:]) -> APNsResponse {
        APNsResponse(status: status, headers: headers, body: Array(body.utf8), now: Self.now)
    }

    private func outcome(_ status: Int, _ reason: String?, retryAfter: String? = nil) -> DeliveryOutcome? {
        let body = reason.map { #"{"reason":"\#($0)"}"# } ?? ""
        let headers: HTTPHeaders = retryAfter.map { ["retry-after": $0] } ?? [:]
        guard case .outcome(let outcome) = response(status, body, headers).decision else { return nil }
        return outcome
    }

    @Test(arguments: ["", "{", "[]", #"{"reason":"BadDeviceToken"}"#, "<html>"])
    func twoHundredIsDeliveredWhateverTheBody(_ body: String) {
        #expect(response(200, body).decision == .outcome(.delivered(DeliveryResponse(status: 200))))
    }

    @Test func theNameOfTheProviderIsKept() {
        let headers: HTTPHeaders = ["apns-id": "5c36ab1d-0a0e-4a9e-8f3b-1d3f5a6b7c8d"]
        #expect(
            response(200, "", headers).decision
                == .outcome(
                    .delivered(DeliveryResponse(status: 200, providerID: "5c36ab1d-0a0e-4a9e-8f3b-1d3f5a6b7c8d"))))
        let both: HTTPHeaders = ["apns-id": "a", "apns-unique-id": "b"]
        #expect(
            response(200, "", both).decision
                == .outcome(.delivered(DeliveryResponse(status: 200, providerID: "b"))))
        let long: HTTPHeaders = ["apns-id": String(repeating: "a", count: 65)]
        #expect(response(200, "", long).decision == .outcome(.delivered(DeliveryResponse(status: 200))))
    }

    @Test(arguments: ["BadDeviceToken", "DeviceTokenNotForTopic"])
    func aRefusedTokenIsOne(_ reason: String) {
        guard case .tokenRefused(let response) = outcome(400, reason) else {
            Issue.record("\(reason) refuses no token")
            return
        }
        #expect(response.status == 400 && response.error?.hasSuffix(": \(reason)") == true)
    }

    @Test func goneDevicesHaveTheirTime() {
        for (body, since) in [
            (#"{"reason":"Unregistered","timestamp":1794999999000}"#, 1_794_999_999_000),
            (#"{"reason":"ExpiredToken","timestamp":1794999999000}"#, 1_794_999_999_000),
            // Of a time to come, it would take a device that registers again.
            (#"{"reason":"Unregistered","timestamp":9994999999000}"#, Self.now),
            (#"{"reason":"Unregistered","timestamp":"x"}"#, nil), (#"{"timestamp":-1}"#, nil), ("", nil), ("x", nil),
        ] as [(String, Int64?)] {
            guard case .outcome(.deviceGone(let response, let time)) = response(410, body).decision else {
                Issue.record("410 is not gone")
                continue
            }
            #expect(time == since && response.status == 410)
        }
    }

    @Test(
        arguments: [
            (400, "BadTopic"), (400, "TopicDisallowed"), (400, "MissingTopic"), (400, "BadCertificateEnvironment"),
            (403, "InvalidProviderToken"), (403, "MissingProviderToken"), (403, "Forbidden"), (403, "BadCertificate"),
            (403, "UnrelatedKeyIdInToken"), (403, nil), (401, nil),
            (429, "TooManyProviderTokenUpdates"),
        ] as [(Int, String?)])
    func ourConfigurationHoldsTheApp(_ status: Int, _ reason: String?) {
        guard case .providerRefused(let response, let delay) = outcome(status, reason) else {
            Issue.record("\(reason ?? "") does not hold the app")
            return
        }
        #expect(response.status == status && response.error?.hasSuffix(reason ?? "key") == true)
        #expect(delay == (status == 429 ? .seconds(60) : nil))
    }

    @Test(
        arguments: [
            (400, "BadCollapseId"), (400, "BadExpirationDate"), (400, "BadMessageId"), (400, "BadPriority"),
            (400, "InvalidPushType"), (400, "PayloadEmpty"), (400, "DuplicateHeaders"), (400, "MissingDeviceToken"),
            (404, "BadPath"), (405, "MethodNotAllowed"), (413, "PayloadTooLarge"), (400, nil), (418, nil),
            (404, "BadDeviceToken"),
        ] as [(Int, String?)])
    func ourMistakesAreRejected(_ status: Int, _ reason: String?) {
        guard case .rejected(let response) = outcome(status, reason) else {
            Issue.record("\(reason ?? "") is not rejected")
            return
        }
        #expect(response.status == status)
    }

    @Test(
        arguments: [
            (400, "IdleTimeout"), (500, "InternalServerError"), (503, "ServiceUnavailable"), (503, "Shutdown"),
            (502, nil),
            (301, nil), (408, nil), (500, "BadDeviceToken"), (503, "Unregistered"),
        ] as [(Int, String?)])
    func whatMayPassIsAFailure(_ status: Int, _ reason: String?) {
        guard case .failed(let response, nil) = outcome(status, reason) else {
            Issue.record("\(status) is no failure")
            return
        }
        #expect(response.status == status)
        #expect(self.response(status, #"{"reason":"\#(reason ?? "x")"}"#).isShutdown == (reason == "Shutdown"))
    }

    @Test func aBusyDeviceHasAMinuteAtLeastAndAnHourAtMost() {
        for (header, delay) in [
            (nil, 60), ("1", 60), ("120", 120), ("31536000", 3_600), ("soon", 60), ("-5", 60),
        ] as [(String?, Int)] {
            guard case .failed(_, let time) = outcome(429, "TooManyRequests", retryAfter: header) else {
                Issue.record("429 is no failure")
                continue
            }
            #expect(time == .seconds(delay))
        }
        for (header, delay) in [("5", 5), ("31536000", 3_600)] {
            guard case .failed(_, let time) = outcome(503, "ServiceUnavailable", retryAfter: header) else {
                Issue.record("503 is no failure")
                continue
            }
            #expect(time == .seconds(delay))
        }
    }

    @Test func anExpiredProviderTokenWantsANewOne() {
        guard
            case .providerTokenExpired(let refused) =
                response(403, #"{"reason":"ExpiredProviderToken"}"#).decision
        else {
            Issue.record("it is not seen")
            return
        }
        #expect(refused.status == 403 && refused.error?.hasSuffix("ExpiredProviderToken") == true)
        #expect(outcome(500, "ExpiredProviderToken") != nil)
    }

    @Test func nothingButAReasonGetsIntoErrors() {
        let token = String(repeating: "0a", count: 24)
        for body in [
            #"{"reason":"\#(token)"}"#, #"{"reason":"no \#(token)"}"#, token,
            #"{"reason":"\#(String(repeating: "a", count: 49))"}"#, #"{"reason":1}"#,
        ] {
            guard case .outcome(.failed(let answer, _)) = response(500, body).decision else {
                Issue.record("500 is no failure")
                continue
            }
            #expect(answer.error == "APNs failed")
        }
    }

    @Test func theStatusSaysWhetherTheProviderTokenWasTaken() {
        for (status, reason, proof) in [
            (200, "", APNsLink.Proof.taken), (400, "BadDeviceToken", .taken), (410, "Unregistered", .taken),
            (413, "PayloadTooLarge", .taken), (403, "InvalidProviderToken", .refused), (400, "IdleTimeout", .nothing),
            (429, "TooManyRequests", .nothing), (503, "Shutdown", .nothing), (500, "", .nothing),
        ] {
            #expect(response(status, #"{"reason":"\#(reason)"}"#).proof == proof)
        }
    }
}
