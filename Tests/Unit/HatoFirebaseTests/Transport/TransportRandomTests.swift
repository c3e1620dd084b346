import HatoModel
import Testing

@testable import HatoFirebase

/// Polls, segments, frames and the switch together, against a browser: with any order of requests and responses, all
/// messages of both directions come once and in their order.
@Suite struct TransportRandomTests {
    private struct Run {
        var polls: PollStateMachine
        var transport = TransportSwitch(host: "h")
        var assembler = FrameAssembler()
        var browser = BrowserModel()
        /// What the server received.
        var received: [Int] = []
        /// Scripts on their way to the browser.
        var scripts: [(script: [UInt8], isStart: Bool)] = []
        /// Frames on their way to the browser.
        var frames: [[UInt8]] = []
        var timers: Set<PollStateMachine.Timer> = []
        var failure: String?

        init?() {
            guard let secrets = PollScript.Secrets(id: "i", password: "p") else { return nil }
            polls = PollStateMachine(secrets, callback: 1)
            feedPolls(.started(request: 1))
            send(0)
        }

        /// The session sends a message.
        mutating func send(_ value: Int) { feedSwitch(.send(Array("{\"t\":\"d\",\"d\":\(value)}".utf8))) }

        mutating func feedPolls(_ event: PollStateMachine.Event) {
            for action in polls.handle(event) {
                switch action {
                case .respond(let request, let script): scripts.append((script, request == 1))
                case .received(let message): feedSwitch(.pollsReceived(message))
                case .schedule(let timer, _): timers.insert(timer)
                case .cancel(let timer): timers.remove(timer)
                case .end: feedSwitch(.pollsEnded)
                }
            }
        }

        mutating func feedSwitch(_ event: TransportSwitch.Event) {
            for action in transport.handle(event) {
                switch action {
                case .deliver(.whole(let bytes)):
                    if let value = (try? JSONParser.parse(bytes))?["d"]?["n"]?.integer { received.append(Int(value)) }
                case .deliver(.oversized): failure = "too large"
                case .sendOnSocket(_, let bytes): frames += FrameSplitter.frames(of: bytes).map { Array($0) }
                case .sendOverPolls(let bytes): feedPolls(.send(bytes))
                case .handOver: feedPolls(.handedOver)
                case .closeSocket: failure = failure ?? "the socket is closed"
                case .end(let end): failure = failure ?? "the session ends: \(end)"
                }
            }
        }

        /// Something that is on its way arrives, or a time comes.
        mutating func move(_ random: inout SeededInputs) {
            browser.poll()
            switch random.below(5) {
            case 0 where !browser.requests.isEmpty:
                let request = browser.requests.remove(at: random.below(browser.requests.count))
                feedPolls(.polled(request: request.number, .init(serial: request.number, segments: request.segments)))
            case 1 where !scripts.isEmpty:
                let response = scripts.remove(at: random.below(scripts.count))
                browser.run(response.script, isStart: response.isStart)
            case 2 where !browser.frames.isEmpty:
                if let message = assembler.received(browser.frames.removeFirst()[...]) {
                    feedSwitch(.socketReceived(5, message))
                }
            case 3 where !frames.isEmpty: browser.take(frames.removeFirst())
            default:
                if timers.remove(.flush) != nil {
                    feedPolls(.timerFired(.flush))
                } else if random.once(in: 3), timers.remove(.poll) != nil {
                    feedPolls(.timerFired(.poll))
                }
            }
        }

        var isQuiet: Bool { browser.frames.isEmpty && frames.isEmpty && polls.heldBytes == 0 }
    }

    private func run(_ random: inout SeededInputs, switchesAfter: Int?) -> String? {
        guard var run = Run() else { return "no secrets" }
        var (sent, received) = (0, 0)
        for step in 0..<300 {
            if step == switchesAfter { run.feedSwitch(.socketOpened(5)) }
            if random.once(in: 5) {
                sent += 1
                run.send(sent)
            }
            if random.once(in: 5) {
                received += 1
                run.browser.send(received, padding: random.once(in: 4) ? random.below(40) : 0)
            }
            run.move(&random)
            if let failure = run.failure ?? run.browser.failure { return failure }
        }
        // Also what is sent when all is quiet arrives.
        for _ in 0..<3 {
            for _ in 0..<5_000
            where !run.isQuiet || run.received.count < received || run.browser.received.count <= sent {
                run.move(&random)
            }
            if let failure = run.failure ?? run.browser.failure { return failure }
            if run.received != (0..<received).map({ $0 + 1 }) { return "\(run.received) of \(received)" }
            if run.browser.received != Array(0...sent) { return "\(run.browser.received) of \(sent)" }
            sent += 1
            run.send(sent)
        }
        if run.browser.isClosed { return "closed" }
        return switchesAfter == nil || run.browser.hasSwitched ? nil : "no switch"
    }

    @Test func pollsLoseNothing() {
        let failures = SeededInputs.failures(60) { random in run(&random, switchesAfter: nil) }
        #expect(failures.isEmpty, "\(failures)")
    }

    @Test func switchLosesNothing() {
        let failures = SeededInputs.failures(120) { random in
            let after = random.below(200)
            return run(&random, switchesAfter: after)
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
