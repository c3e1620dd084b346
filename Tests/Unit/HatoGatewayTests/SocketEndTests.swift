import HatoFirebase
import NIOCore
import NIOWebSocket
import Testing

@testable import HatoGateway

/// With which codes and reasons sockets of sessions are closed (RFC 6455 §7.4).
@Suite struct SocketEndTests {
    @Test func everyEndHasACodeForFramesAndAShortReason() {
        let sessions: [SessionEnd] = [
            .wireLost, .outage("x"), .unreadableResult, .unreadableMessage("x"), .notUTF8, .tooEarly, .tooManyRequests,
            .tooManyResponses, .tokenEnded, .unknownNamespace,
        ]
        let ends: [SocketEnd] =
            [.ofClient(4_001), .notNeeded, .stopping, .wrongFrame, .noText, .notUTF8, .tooLong, .busy, .tooSlow]
            + sessions.map { .ofSession($0) }
        for end in ends {
            #expect(end.code.isForFrames, "\(end)")
            #expect(end.reason.utf8.count <= 123, "\(end)")
            switch end {
            case .ofClient: #expect(end.reason.isEmpty)
            default: #expect(!end.reason.isEmpty, "\(end)")
            }
        }
    }

    @Test func outagesAskToComeBackLater() {
        for end in [SessionEnd.wireLost, .outage("unavailable"), .tooManyResponses] {
            #expect(SocketEnd.ofSession(end).code == .unknown(1013))
        }
        #expect(SocketEnd.busy.code == .unknown(1013))
    }

    @Test func closeFramesOfClientsAreChecked() {
        let rows: [(data: [UInt8], end: SocketEnd)] = [
            ([], .ofClient(1_000)), ([0x03, 0xE9], .ofClient(1_001)), ([0x0F, 0xA1, 0x62], .ofClient(4_001)),
            ([0x03], .wrongFrame), ([0x03, 0xED], .wrongFrame), ([0, 0], .wrongFrame), ([0xFF, 0xFF], .wrongFrame),
            ([0x03, 0xE8, 0xFF], .notUTF8),
        ]
        for row in rows { #expect(SocketEnd(closedWith: ByteBuffer(bytes: row.data)) == row.end, "\(row)") }
    }
}
