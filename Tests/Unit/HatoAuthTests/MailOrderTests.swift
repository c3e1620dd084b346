import HatoMail
import HatoModel
import HatoRPC
import HatoStorage
import Synchronization
import TestStores
import Testing

@testable import HatoAuth

/// Which mail is sent next, and what stops none of the others.
@Suite(.timeLimit(.minutes(10)))
struct MailOrderTests {
    private static let masuo = "masuo@example.com"

    private func bench(_ mails: MailCatcher) async throws -> AuthBench {
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        _ = try await bench.signUp(Self.masuo)
        return bench
    }

    private static func stalled(_ step: MailFailure.Step) -> MailOutcome {
        .temporary(MailFailure(step: step, code: 421, text: "<a@example.com>: not now", concernsServer: true))
    }

    @Test(arguments: [MailFailure.Step.recipient, .data, .content])
    func aMailThatEndsTheConnectionDoesNotDelayTheOthers(step: MailFailure.Step) async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await bench.request(.signIn, "a@example.com")
        mails.outcome(Self.stalled(step))
        try await bench.sendMails()
        #expect(bench.service.health.checks["mail"] == "on")
        mails.outcome(.accepted)
        try await bench.request(.signIn, "b@example.com")
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == ["a@example.com", "b@example.com"])
        bench.pass(seconds: 61)
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == ["a@example.com", "b@example.com", "a@example.com"])
    }

    @Test func whatEndsTheConnectionForManyMailsIsTheServersFailure() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        for index in 0..<4 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        mails.outcome(Self.stalled(.recipient))
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == (0..<3).map { "a\($0)@example.com" })
        #expect(bench.service.health.checks["mail"] == "RCPT: 421", "no recipient is named")
        #expect(try await bench.queue().first?.error == "RCPT: 421 <a@example.com>: not now", "administrators read it")
    }

    @Test(arguments: [450, 550])
    func aServerThatRefusesManyMailsInARowIsNoHealthyOne(code: Int) async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        let refusal = MailCatcher.failure(code)
        mails.outcome(code < 500 ? .temporary(refusal) : .permanent(refusal))
        for index in 0..<5 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        let pause = try await bench.sendMails()
        #expect(bench.service.health.checks["mail"] == .string("RCPT: \(code)"))
        #expect(bench.service.health.status == .degraded)
        // Each is tried: those that are refused hold up no other.
        #expect(mails.mails.count == 5 && (pause == nil) == (code >= 500))
        bench.pass(seconds: 3_599)
        try await bench.sendMails()
        #expect(bench.service.health.status == .degraded, "no mail has been taken since")
        mails.outcome(.accepted)
        try await bench.request(.signIn, "b@example.com")
        try await bench.sendMails()
        #expect(bench.service.health.status == .ready && mails.mails.last?.to == "b@example.com")
    }

    @Test func refusalsCountForAnHour() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.permanent(MailCatcher.failure(550)))
        for address in ["a", "b", "c", "d", "e", "f"] {
            let isBad = ["c", "f"].contains(address)
            try await bench.request(.signIn, "\(address)@example.com")
            try await bench.sendMails()
            #expect(bench.service.health.status == (isBad ? .degraded : .ready), "\(address)")
            guard address == "c" else { continue }
            bench.pass(seconds: 3_599)
            #expect(bench.service.health.status == .degraded)
            bench.pass(seconds: 1)
            #expect(bench.service.health.status == .ready && bench.service.health.checks["mail"] == "on")
        }
        // The last refusal counts, not the first.
        bench.pass(seconds: 3_000)
        try await bench.request(.signIn, "g@example.com")
        try await bench.sendMails()
        bench.pass(seconds: 3_000)
        #expect(bench.service.health.status == .degraded)
    }

    @Test func refusalsOfAQuietServiceCountHoweverFarApart() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.permanent(MailCatcher.failure(550)))
        for address in ["a", "b", "c"] {
            #expect(bench.service.health.status == .ready, "\(address)")
            bench.pass(seconds: 7_200)
            try await bench.request(.signIn, "\(address)@example.com")
            try await bench.sendMails()
        }
        #expect(bench.service.health.status == .degraded)
    }

    /// Of addresses with letters beyond ASCII, which the server has not seen, and of a sender that stops.
    @Test(arguments: [MailFailure.Step.sender, .waiting, .recipient])
    func mailsThatTheServerHasNotSeenSayNothingOfIt(step: MailFailure.Step) async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        let failure = MailFailure(step: step, text: "not given to the server", concernsServer: false)
        for (index, outcome) in [MailOutcome.temporary(failure), .permanent(failure)].enumerated() {
            mails.outcome(outcome)
            for number in 0..<4 { try await bench.request(.signIn, "a\(index)\(number)@example.com") }
            try await bench.sendMails()
            #expect(bench.service.health.status == .ready)
        }
        #expect(mails.mails.count == 8)
    }

    @Test func oneMailThatIsRefusedAgainAndAgainSaysNothingOfTheServer() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.signIn, "a@example.com")
        for _ in 0..<4 {
            try await bench.sendMails()
            bench.pass(seconds: 121)
        }
        #expect(mails.mails.count > 2 && bench.service.health.status == .ready)
    }

    @Test func aServerIsHealthyAgainWhenNoMailIsLeft() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure(nil, concernsServer: true)))
        try await bench.request(.signIn, "a@example.com")
        try await bench.sendMails()
        bench.pass(seconds: 301)
        try await bench.sendMails()
        #expect(bench.service.health.status == .degraded)
        bench.pass(seconds: 301)
        #expect(try await bench.sendMails() == nil)
        #expect(mails.mails.count == 2 && bench.service.health.status == .ready, "its digits have expired")
    }

    @Test func mailsToProvedAddressesOfAccountsGoFirst() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        _ = try await bench.signUp("a0@example.com")
        for index in 0..<3 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        try await bench.request(.passwordReset, Self.masuo)
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == [Self.masuo] + (0..<3).map { "a\($0)@example.com" })
        // One that waits for its next attempt does not delay the others.
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.passwordReset, Self.masuo)
        try await bench.sendMails()
        mails.outcome(.accepted)
        try await bench.request(.signIn, "b@example.com")
        let wait = try #require(try await bench.sendMails())
        #expect(mails.mails.last?.to == "b@example.com" && (30_000...60_000).contains(wait))
    }

    @Test func aMailWhoseRecordCannotBeWrittenIsSentOnce() async throws {
        let mails = MailCatcher()
        let store = RefusingStore(try MemoryStore())
        let bench = try await AuthBench.open(on: store, mails: mails) { configuration in
            do { _ = try configuration.setMail { AuthBench.mailSettings[$0] } } catch { Issue.record(error) }
        }
        try await bench.request(.signIn, Self.masuo)
        store.refuses(true)
        for _ in 0..<3 { await #expect(throws: StoreError.self) { try await bench.sendMails() } }
        #expect(mails.mails.count == 1)
        store.refuses(false)
        try await bench.sendMails()
        #expect(mails.mails.count == 1)
        #expect(try await bench.queue().isEmpty)
    }

    @Test func aClockThatIsSetBackStopsNoMail() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure(nil, concernsServer: true)))
        try await bench.request(.signIn, "a@example.com")
        try await bench.sendMails()
        bench.pass(seconds: -86_400)
        mails.outcome(.accepted)
        try await bench.sendMails()
        #expect(mails.mails.count == 2)
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.signIn, "b@example.com")
        try await bench.sendMails()
        bench.pass(seconds: -86_400)
        mails.outcome(.accepted)
        try await bench.sendMails()
        #expect(try await bench.queue().isEmpty)
    }
}

/// Refuses writes while a test says so.
private final class RefusingStore: WrappedStore {
    let store: any Store
    private let isRefusing = Mutex(false)

    init(_ store: any Store) { self.store = store }

    func refuses(_ isRefusing: Bool) { self.isRefusing.withLock { $0 = isRefusing } }

    func submit(_ write: any StoreWrite) {
        guard isRefusing.withLock({ $0 }) else { return store.submit(write) }
        write.ended(.failure(StoreError.io("the disk is full")))
    }
}
