import HatoModel
import Testing

@testable import HatoFirebase

/// Random sessions: requests, writes of others, lost rights and ends in any order and with any delay, against a client
/// that checks what it must see.
@Suite struct SessionRandomTests {
    private struct Run {
        var machine = SessionStateMachine(database: nil, host: "h", session: "s")
        var service = ServiceModel()
        var client = ClientModel()
        /// Calls on their way to the service.
        var calls: [(number: Int, method: String, params: [UInt8])] = []
        var isClosed = false
        var lastTag = 0
        var failure: String?

        init() {
            _ = machine.handle(.accepted)
            feed(.wireOpened(at: 1))
        }

        mutating func feed(_ event: SessionStateMachine.Event) {
            for action in machine.handle(event) {
                if isClosed { failure = "an action behind the close: \(action.line)" }
                switch action {
                case .send(let text): if let broken = client.take(text) { failure = failure ?? broken }
                case .call(let number, let method, let params): calls.append((number, method, params))
                case .close: isClosed = true
                case .authenticate, .schedule, .cancel: break
                }
            }
        }

        mutating func say(_ message: String) {
            if !message.isEmpty { feed(.message(.whole(Array(message.utf8)))) }
        }

        /// The client does something.
        mutating func act(_ random: inout SeededInputs) {
            let path = "/n\(random.below(4))"
            let listens = client.listens.keys.sorted()
            switch random.below(8) {
            case 0, 1: listen(path, &random)
            case 2 where !listens.isEmpty: say(client.unlisten(random.one(of: listens)))
            case 3 where !listens.isEmpty:
                let number = random.one(of: listens)
                if client.listens[number]?.isAcknowledged == true {
                    say(client.transact(number, service.nextValue()))
                }
            case 4: say(client.read(path))
            default: say(client.write(path, service.nextValue()))
            }
        }

        private mutating func listen(_ path: String, _ random: inout SeededInputs) {
            let hasDefault = client.listens.values.contains { $0.path == path && $0.tag == nil }
            lastTag += 1
            let isTagged = hasDefault || random.once(in: 2)
            // A hash makes sense for a default listen only.
            let known = isTagged || random.once(in: 2) ? nil : service.values[path]
            say(client.listen(path, tag: isTagged ? lastTag : nil, known: known))
        }

        /// The next call reaches the service.
        mutating func serve(_ random: inout SeededInputs) {
            guard !calls.isEmpty else { return }
            let call = calls.removeFirst()
            let isDenied = random.once(in: 10)
            if let broken = service.take(call.number, call.method, call.params, isDenied: isDenied) {
                failure = failure ?? broken
            }
        }

        /// The next line of the service reaches the session.
        mutating func deliver() {
            if let event = service.takeSent() { feed(event) }
        }

        mutating func settle(_ random: inout SeededInputs) {
            while !calls.isEmpty || !service.sent.isEmpty {
                serve(&random)
                deliver()
            }
        }
    }

    private func run(_ random: inout SeededInputs, ending: (inout Run, inout SeededInputs) -> String?) -> String? {
        var run = Run()
        let steps = 20 + random.below(150)
        for _ in 0..<steps {
            switch random.below(10) {
            case 0...2: run.act(&random)
            case 3...5: run.serve(&random)
            case 6...8: run.deliver()
            default:
                if random.once(in: 4) {
                    run.service.revoke(at: random.below(4))
                } else {
                    run.service.write("/n\(random.below(4))", run.service.nextValue())
                }
            }
            if let failure = run.failure { return failure }
        }
        return ending(&run, &random) ?? run.failure
    }

    @Test func clientsSeeWhatTheyMust() {
        let failures = SeededInputs.failures(300) { random in
            run(&random) { run, random in
                run.settle(&random)
                if run.client.waiting > 0 { return "\(run.client.waiting) requests have no response" }
                for listen in run.client.listens.values {
                    // Nothing is left out, and all is in the order of the commits.
                    let history = run.service.history[listen.path] ?? [0]
                    if listen.pushed != history.suffix(listen.pushed.count) { return "\(listen), of \(history)" }
                    if listen.value != run.service.values[listen.path] { return "\(listen) is not the newest" }
                }
                return run.isClosed ? "closed" : nil
            }
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    @Test func endOfATokenComesOnceAndLast() {
        let failures = SeededInputs.failures(200) { random in
            run(&random) { run, random in
                run.service.endToken()
                run.client.tokenHasEnded = true
                for _ in 0..<20 {
                    if random.once(in: 3) { run.act(&random) }
                    run.serve(&random)
                    if random.once(in: 2) { run.deliver() }
                }
                run.settle(&random)
                let missing = run.client.withoutResponse.intersection(run.service.written)
                if !missing.isEmpty { return "the writes of \(missing) have no response" }
                if !run.client.isOver {
                    // There was neither a listen nor a request: the timer ends it.
                    run.feed(.timerFired(.tokenEnd))
                    run.feed(.timerFired(.authEnd))
                }
                return run.client.isOver ? nil : "no end"
            }
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    @Test func lostWireEndsEverything() {
        let failures = SeededInputs.failures(100) { random in
            run(&random) { run, random in
                run.feed(.wireEnded)
                if !run.isClosed { return "open" }
                run.act(&random)
                run.settle(&random)
                return nil
            }
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
