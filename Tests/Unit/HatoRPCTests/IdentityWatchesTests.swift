import HatoModel
import HatoTesting
import Testing

@testable import HatoRPC

/// A connection with many listeners: adding, removing and expiring one costs the logarithm of their number.
struct IdentityWatchesTests {
    /// A priority that counts how often it is compared.
    private struct Counted: Comparable {
        var value: Int
        let comparisons: Shared<Int>

        static func < (left: Counted, right: Counted) -> Bool {
            left.comparisons.change { $0 += 1 }
            return left.value < right.value
        }

        static func == (left: Counted, right: Counted) -> Bool { left.value == right.value }
    }

    @Test(arguments: [1, 2, 3])
    func heapAgreesWithASortedList(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var heap = IndexedHeap<Int, Int>()
        var model: [Int: Int] = [:]
        for _ in 0..<20_000 {
            let key = Int.random(in: 0..<300, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                let priority = Int.random(in: 0..<50, using: &random)
                heap.insert(key, priority)
                model[key] = priority
            case 2, 3:
                heap.remove(key)
                model[key] = nil
            default:
                guard let first = heap.first else {
                    #expect(model.isEmpty)
                    continue
                }
                #expect(model[first.key] == first.priority)
                #expect(first.priority == model.values.min())
                heap.remove(first.key)
                model[first.key] = nil
            }
            #expect(heap.count == model.count)
            #expect(heap.contains(key) == (model[key] != nil))
        }
    }

    @Test func entryOfTenThousandIsInsertedAndRemovedInALogarithmOfSteps() {
        let comparisons = Shared(0)
        var random = SeededRandom(seed: 4)
        var heap = IndexedHeap<Int, Counted>()
        let count = 10_000
        for key in 0..<count {
            heap.insert(key, Counted(value: Int.random(in: 0..<1_000, using: &random), comparisons: comparisons))
        }
        // At most 14 levels, two comparisons each on the way down.
        #expect(comparisons.current <= count * 14)
        comparisons.change { $0 = 0 }
        for key in (0..<count).shuffled(using: &random) { heap.remove(key) }
        #expect(comparisons.current <= count * 29)
        #expect(heap.isEmpty)
    }

    @Test(arguments: [5, 6])
    func watchesEndAsTheirTokensDo(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var watches = IdentityWatches()
        var model: [UInt64: Int64] = [:]
        var keys: [UInt64: UInt64] = [:]
        let ended = Shared<Set<UInt64>>([])
        var now: Int64 = 0
        for number in 0..<5_000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let end = now + Int64.random(in: 1...400, using: &random)
                let next = UInt64(number)
                let key = watches.add(identity(end)) { _, _ in ended.change { $0.insert(next) } }
                model[next] = end
                keys[next] = key
            case 2:
                guard let any = model.keys.sorted().randomElement(using: &random), let key = keys[any] else { continue }
                let (once, twice) = (watches.remove(key), watches.remove(key))
                #expect(once && !twice)
                model[any] = nil
            default:
                now += Int64.random(in: 0...40, using: &random)
                ended.change { $0 = [] }
                for change in watches.takeExpired(now: now) { change(.expired, RPCIdentityWork {}) }
                let expected = Set(model.filter { $0.value <= now }.keys)
                #expect(ended.current == expected)
                for number in expected { model[number] = nil }
            }
            #expect(watches.count == model.count)
            #expect(watches.nextEnd == model.values.min())
        }
    }

    @Test func newCallerMovesAllEnds() {
        var watches = IdentityWatches()
        for end in 1...3 { _ = watches.add(identity(Int64(end))) { _, _ in } }
        #expect(watches.callerChanged(to: user(90), isEnd: false).count == 3)
        #expect(watches.nextEnd == 90)
        #expect(watches.takeExpired(now: 89).isEmpty)
        #expect(
            watches.callerChanged(to: .nobody, isEnd: true).map(\.1) == Array(repeating: .replaced(.nobody), count: 3))
        #expect(watches.nextEnd == nil)
    }

    @Test func endedIdentitiesAreTakenAndTheOthersStay() {
        var watches = IdentityWatches()
        let ended = Shared<[String]>([])
        for (uid, end) in [("anna", 5), ("bea", 4), ("anna", nil)] as [(String, Int64?)] {
            let caller = Caller.user(Caller.User(uid: uid, expiresAt: end))
            _ = watches.add(IdentityWatches.Identity(caller: caller, method: "check.listen")) { _, _ in
                ended.change { $0.append(uid) }
            }
        }
        _ = watches.add(IdentityWatches.Identity(caller: .administrator, method: "check.listen")) { _, _ in }
        for change in watches.takeEnded({ $0.uid == "anna" }) { change(.expired, RPCIdentityWork {}) }
        #expect(ended.current == ["anna", "anna"])
        #expect(watches.count == 2 && watches.nextEnd == 4)
        #expect(watches.takeEnded { $0.uid == "anna" }.isEmpty)
    }

    /// Each call has a variable or claims of its own.
    @Test func whatAnAdministratorSaysOfACallerIsNotKept() {
        let members: JSONObject = ["role": "guest", "rights": [1, 2, 3]]
        func kept(_ caller: Caller) -> Caller {
            IdentityWatches.Identity(caller: caller, method: "check.listen").kept.caller
        }
        #expect(kept(.variable(members)) == .variable([:]))
        #expect(kept(.user(Caller.User(uid: "anna", claims: members))) == .user(Caller.User(uid: "anna")))
        let signedIn = Caller.user(Caller.User(uid: "anna", claims: members, expiresAt: 9, kid: "k"))
        #expect(kept(signedIn) == signedIn, "its session says whether it has ended")
        #expect(kept(.administrator) == .administrator)
    }

    @Test func watchOfAVariableFollowsTheConnection() {
        for isCallCredential in [true, false] {
            var watches = IdentityWatches()
            let identity = IdentityWatches.Identity(
                caller: .variable(["role": "guest"]), isCallCredential: isCallCredential, method: "check.listen")
            _ = watches.add(identity) { _, _ in }
            let ended = watches.callerChanged(to: .nobody, isEnd: true).map(\.1)
            #expect(ended == (isCallCredential ? [] : [.replaced(.nobody)]))
            _ = watches.add(identity) { _, _ in }
            #expect(watches.callerChanged(to: .nobody, isEnd: false).map(\.1).contains(.replaced(.nobody)))
        }
    }

    private func user(_ end: Int64) -> Caller { .user(Caller.User(uid: "anna", expiresAt: end)) }

    private func identity(_ end: Int64) -> IdentityWatches.Identity {
        IdentityWatches.Identity(caller: user(end), method: "check.listen")
    }
}
