import HatoModel
import Testing

@testable import HatoFirebase

/// Random sessions: requests, writes of others, lost rights, new connections and ends in any order and with any delay,
/// against a client that checks what it must see.
@Suite struct SessionRandomTests {
    private struct Run {
        var machine = SessionStateMachine(database: nil, host: "h", session: "s")
        var service = ServiceModel()
        var client = ClientModel()
        /// Calls on their way to the service.
        var calls: [(number: Int, method: String, params: [UInt8])] = []
        /// Timers of reads that wait for an index.
        var timers: [SessionStateMachine.Timer] = []
        var isClosed = false
        var failure: String?
        /// The tree of the service when it sent what has come last.
        private var truth = TreeNode.empty
        /// Whether reads may meet an index that is being built.
        var buildsIndexes = true

        init() throws { try connect() }

        private mutating func connect() throws {
            machine = SessionStateMachine(database: nil, host: "h", session: "s")
            (calls, timers, isClosed) = ([], [], false)
            _ = machine.handle(.accepted)
            try feed(.wireOpened(at: 1))
        }

        mutating func feed(_ event: SessionStateMachine.Event) throws {
            for action in machine.handle(event) {
                if isClosed { failure = "an action behind the close: \(action.line)" }
                switch action {
                case .send(let text): failure = try failure ?? client.take(text, truth)
                case .call(let number, let method, let params): calls.append((number, method, params))
                case .authenticate(let number, let credential):
                    calls.append((number, "session.authenticate", credential.params()))
                case .close(let end):
                    isClosed = true
                    if end != .wireLost, end != .tokenEnded {
                        failure = failure ?? "closed for \(end) by \(event.text)"
                    }
                case .schedule(.read(let number), _): timers.append(.read(number))
                case .schedule, .cancel: break
                }
            }
        }

        private mutating func say(_ message: String) throws {
            if !message.isEmpty { try feed(.message(.whole(Array(message.utf8)))) }
        }

        /// The client does something.
        mutating func act(_ random: inout SeededInputs) throws {
            let listens = client.listens.keys.sorted()
            let place = random.place()
            let path = random.path(0...2)
            switch random.below(16) {
            case 0...2:
                let query = random.once(in: 2) ? SampleQuery.everything : random.one(of: SampleQuery.selecting)
                try say(client.listen(path, query, isHashed: random.once(in: 2)))
            case 3 where !listens.isEmpty: try say(client.unlisten(random.one(of: listens)))
            case 4 where !listens.isEmpty:
                let id = random.one(of: listens)
                let value = random.value(at: client.listens[id]?.path ?? path)
                try say(client.transact(id, value))
            case 5, 6:
                let query = random.once(in: 3) ? SampleQuery.everything : random.one(of: SampleQuery.selecting)
                try say(client.read(path, query))
            case 7, 8: try say(client.update(path, random.update(at: path)))
            case 9: try say(client.setOnDisconnect(place, random.value(at: place)))
            case 10: try say(client.updateOnDisconnect(path, random.update(at: path)))
            case 11: try say(client.cancelOnDisconnect(random.path(0...3)))
            case 12: try say(random.once(in: 2) ? client.authenticate() : client.signOut())
            case 13: try say(client.noteStatistics())
            default: try say(client.set(place, random.value(at: place)))
            }
        }

        /// The next call reaches the service.
        mutating func serve(_ random: inout SeededInputs) throws {
            guard !calls.isEmpty else { return }
            let call = calls.removeFirst()
            var fate = ServiceModel.Fate.usual
            if random.once(in: 10) { fate = .denied }
            let isByChild = String(decoding: call.params, as: UTF8.self).contains(#""orderBy":"n""#)
            if buildsIndexes, call.method == "messages.get", isByChild, random.once(in: 3) { fate = .indexIsBuilt }
            try service.take(call.number, call.method, call.params, fate)
            // Another identity may see less.
            if call.method.hasPrefix("session.") { service.revoke { random.once(in: 6) } }
        }

        /// The next line of the service reaches the session.
        mutating func deliver() throws {
            guard let (event, tree) = service.takeSent() else { return }
            truth = tree
            let before = client.pushes
            try feed(event)
            guard case .notified(let notification) = event else {
                if client.pushes != before { failure = failure ?? "a push comes with \(event)" }
                return
            }
            let events = try JSONParser.parse(Array(notification.params))["events"]?.array?.count ?? 0
            // One that the client has ended gets none.
            if client.pushes != before, client.pushes != before + events {
                failure = failure ?? "\(client.pushes - before) pushes of \(events) events"
            }
        }

        mutating func fireTimer(_ random: inout SeededInputs) throws {
            if !timers.isEmpty { try feed(.timerFired(timers.remove(at: random.below(timers.count)))) }
        }

        /// Other clients write, or rights are lost.
        mutating func interfere(_ random: inout SeededInputs) throws {
            guard !random.once(in: 6) else { return service.revoke { random.once(in: 4) } }
            let commits = try (0..<1 + random.below(3)).map { _ -> [ServiceModel.Write] in
                guard random.once(in: 3) else {
                    let place = random.place()
                    return [(place, random.value(at: place))]
                }
                let path = random.path(0...2)
                return try random.update(at: path).map { (try path.appending(TreePath($0.name)), $0.value) }
            }
            try service.write(commits, isBehind: random.once(in: 6))
        }

        /// Everything that is on its way arrives.
        mutating func settle(_ random: inout SeededInputs) throws {
            buildsIndexes = false
            while !calls.isEmpty || !service.sent.isEmpty || !timers.isEmpty {
                try serve(&random)
                try deliver()
                try fireTimer(&random)
            }
            buildsIndexes = true
            if client.waiting > 0 { failure = failure ?? "\(client.waiting) requests have no response" }
            if let difference = client.difference(from: service.tree) { failure = failure ?? "at rest \(difference)" }
            if client.listens.count != service.listenerCount {
                failure = failure ?? "\(service.listenerCount) listeners of \(client.listens.count) listens"
            }
            for (number, hash) in client.transactions where service.made[number] != hash {
                failure = failure ?? "the transaction \(number) replaces what it was not made from"
            }
            if client.deferred != service.deferred {
                failure = failure ?? "\(service.deferred) is to be written, and not \(client.deferred)"
            }
        }

        /// The client loses its connection, and others write before it has another one.
        mutating func reconnect(_ random: inout SeededInputs) throws {
            if random.once(in: 2) {
                try feed(.wireEnded)
                if !isClosed { failure = failure ?? "open without a wire" }
                // Nothing has an effect any more.
                try act(&random)
                try deliver()
            }
            try service.endConnection()
            if random.once(in: 2) { try interfere(&random) }
            truth = service.tree
            try connect()
            for message in client.reconnect() { try say(message) }
        }

        mutating func step(_ random: inout SeededInputs) throws {
            switch random.below(20) {
            case 0...6: try act(&random)
            case 7...11: try serve(&random)
            case 12...16: try deliver()
            case 17: try fireTimer(&random)
            default: try interfere(&random)
            }
        }
    }

    private func run(
        _ random: inout SeededInputs, ending: (inout Run, inout SeededInputs) throws -> String?
    ) throws -> String? {
        var run = try Run()
        for _ in 0..<20 + random.below(150) {
            try run.step(&random)
            if random.once(in: 40) { try run.settle(&random) }
            if let failure = run.failure { return failure }
        }
        return try ending(&run, &random) ?? run.failure
    }

    @Test func clientsSeeWhatTheyMust() {
        var kinds: Set<String> = []
        let failures = SeededInputs.failures(200) { random in
            try run(&random) { run, random in
                try run.settle(&random)
                kinds.formUnion(run.client.kinds)
                return nil
            }
        }
        #expect(failures.isEmpty, "\(failures)")
        // A run in which little happens would show nothing.
        let wanted: Set = [
            "d", "d of a query", "m", "m of a query", "c", "listen ok", "listen ok with a warning",
            "listen permission_denied", "unlisten ok", "read ok", "read permission_denied", "read failure", "p ok",
            "m ok",
            "m permission_denied", "transaction ok", "transaction datastale", "o ok", "om ok", "oc ok",
            "authentication ok", "noted ok",
        ]
        if SeededInputs.count(200) >= 200 { #expect(wanted.subtracting(kinds).isEmpty) }
    }

    @Test func clientsComeBackToWhatTheyMustSee() {
        let failures = SeededInputs.failures(100) { random in
            try run(&random) { run, random in
                for _ in 0..<1 + random.below(3) {
                    try run.reconnect(&random)
                    for _ in 0..<random.below(30) {
                        try run.step(&random)
                        if let failure = run.failure { return failure }
                    }
                    try run.settle(&random)
                }
                return nil
            }
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    @Test func endOfATokenComesOnceAndLast() {
        let failures = SeededInputs.failures(100) { random in
            try run(&random) { run, random in
                run.buildsIndexes = false
                run.service.endToken()
                run.client.tokenHasEnded = true
                for _ in 0..<20 {
                    if random.once(in: 3) { try run.act(&random) }
                    try run.serve(&random)
                    if random.once(in: 2) { try run.deliver() }
                }
                while !run.calls.isEmpty || !run.service.sent.isEmpty {
                    try run.serve(&random)
                    try run.deliver()
                }
                let missing = run.client.withoutResponse.intersection(run.service.made.keys)
                if !missing.isEmpty { return "the writes \(missing) have no response" }
                if !run.client.isOver {
                    // There was neither a listen nor a request: the timer ends it.
                    try run.feed(.timerFired(.tokenEnd))
                    try run.feed(.timerFired(.authEnd))
                }
                return run.failure ?? (run.client.isOver ? nil : "no end")
            }
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}

extension SessionStateMachine.Event {
    fileprivate var text: String {
        switch self {
        case .succeeded(let call, let result): "the result \(String(decoding: result, as: UTF8.self)) of \(call)"
        case .notified(let notification): "\(String(decoding: notification.params, as: UTF8.self))"
        default: "\(self)"
        }
    }
}
