import Testing

@testable import HatoRPC
@testable import HatoRuntime

@Suite struct MemoryPlanTests {
    private let resolver = SettingsResolver(service: "messages", declared: ServeSettings.declared(defaultPort: 7702))

    private func settings(_ arguments: String...) throws -> Settings {
        try resolver.resolve(
            arguments: ["--data", "d"] + arguments, environment: [:])
    }

    @Test(arguments: [0, 1, 23, 24, 25, 400 << 20, 1_536 << 20, (1 << 46) + 7, Int.max])
    func sharesAddUpToWhatThereIs(bytes: Int) {
        let plan = MemoryPlan(bytes: bytes)
        let shares = MemoryShare.all.map { plan.bytes(of: $0) }
        #expect(shares.allSatisfy { $0 >= 0 })
        let sum = shares.reduce(0, +)
        #expect(sum <= bytes && sum > bytes - MemoryShare.all.count)
    }

    @Test func partsOfAllSharesAreTheWhole() {
        #expect(MemoryShare.all.reduce(0) { $0 + $1.parts } == MemoryShare.partsOfAll)
        #expect(Set(MemoryShare.all.map(\.name)).count == MemoryShare.all.count)
    }

    @Test func partsOfHeldMemoryAddUp() {
        #expect(MemoryShare.listeners.parts + MemoryShare.onDisconnect.parts == MemoryShare.held.parts)
    }

    @Test(arguments: [0, 1, 7, 32 << 20, (32 << 20) + 1])
    func leastMemoryWithAShareIsEnoughForIt(wanted: Int) {
        for share in MemoryShare.all {
            let least = MemoryPlan.least(with: wanted, of: share)
            #expect(MemoryPlan(bytes: least).bytes(of: share) >= wanted)
            #expect(least == 0 || MemoryPlan(bytes: least - 1).bytes(of: share) < wanted)
        }
    }

    @Test func derivedValueHasBounds() {
        let derivation = MemoryDerivation(.requests, dividedBy: 8, atLeast: 10, atMost: 20)
        let values = [24 << 3, 24 * 15, 24 << 10].map { derivation.value(in: MemoryPlan(bytes: $0)) }
        #expect(values == [10, 15, 20])
        #expect(derivation.summary == "1/24 of memory-bytes, at least 10, at most 20")
        #expect(MemoryDerivation(.requests).value(in: MemoryPlan(bytes: 0)) == 1)
    }

    @Test func leastMemoryOfATooLargeShareDoesNotOverflow() {
        #expect(MemoryPlan.least(with: .max, of: .memtables) == .max)
    }

    @Test func transportLimitsAreThoseOfTheLargestDefault() throws {
        let settings = try settings("--memory-bytes", "\(1_536 << 20)")
        #expect(ServeSettings.limits(settings) == RPCLimits())
        #expect(settings.integer(ServeSettings.blockCache) == 256 << 20)
        #expect(settings.integer(ServeSettings.memtables) == 128 << 20)
    }

    @Test func boundsFollowFromMemoryBytes() throws {
        let settings = try settings("--memory-bytes", "\(480 << 20)")
        #expect(settings.integer("process-bytes-in-flight-max") == 160 << 20)
        #expect(settings.integer("client-bytes-in-flight-max") == 40 << 20)
        #expect(settings.integer("process-event-bytes-max") == 80 << 20)
        #expect(settings.integer("block-cache-bytes") == 80 << 20)
        #expect(settings.integer("memtable-bytes") == 40 << 20)
        let sources = Dictionary(uniqueKeysWithValues: settings.shown.map { ($0.name, $0.source) })
        #expect(sources["process-bytes-in-flight-max"] == "memory-bytes")
        #expect(sources["memtable-bytes"] == "memory-bytes")
        #expect(sources["memory-bytes"] == "flag")
        #expect(sources["line-bytes-max"] == "default")
    }

    @Test func aLimitThatIsSetTakesPrecedence() throws {
        let settings = try settings("--memory-bytes", "\(480 << 20)", "--block-cache-bytes", "2000000")
        #expect(settings.integer("block-cache-bytes") == 2_000_000)
        #expect(settings.integer("memtable-bytes") == 40 << 20)
        #expect(settings.source(of: "block-cache-bytes") == .flag)
        #expect(settings.source(of: "memtable-bytes") == nil)
    }

    @Test func oneVariableOfTheEnvironmentIsForEveryService() throws {
        let settings = try resolver.resolve(
            arguments: ["--data", "d"], environment: ["HATO_MEMORY_BYTES": "\(480 << 20)"])
        #expect(settings.integer("process-bytes-in-flight-max") == 160 << 20)
    }

    @Test func memoryUnlessSetIsOfThisMachineAndAtMostOneAndAHalfGiB() throws {
        let bytes = try settings().integer("memory-bytes")
        #expect(bytes <= 1_536 << 20 && bytes > 0 && bytes <= AvailableMemory.bytes)
        #expect(AvailableMemory.defaultBytes(available: 500 << 20) == 400 << 20)
        #expect(AvailableMemory.defaultBytes(available: 64 << 30) == 1_536 << 20)
    }

    @Test func tooLittleMemoryIsRefusedWithAValidValue() throws {
        let error = #expect(throws: SettingsError.self) { try settings("--memory-bytes", "67108864") }
        #expect(
            error?.description
                == "setting memory-bytes: 67108864 bytes are too few: requests get 22369621 of them, and the longest line "
                + "and the largest response take 33554432; give 100663296 or more, or make line-bytes-max and "
                + "response-bytes-max smaller")
        _ = try settings("--memory-bytes", "100663296")
        #expect(throws: SettingsError.self) { try settings("--memory-bytes", "100663295") }
        _ = try settings("--memory-bytes", "67108864", "--line-bytes-max", "1000000", "--response-bytes-max", "1000000")
        _ = try settings("--memory-bytes", "67108864", "--process-bytes-in-flight-max", "33554432")
    }

    @Test(arguments: [96 << 20, 101_000_003, 160 << 20, 512 << 20, 4 << 30])
    func theServicesOfOneProcessShareItsBudget(bytes: Int) {
        let line = 32 << 20
        let memory = StackMemory(requestBytes: bytes, requestBytesMin: line)
        #expect(memory.messagesBytes + 2 * memory.otherBytes == bytes)
        #expect(memory.otherBytes >= line && memory.messagesBytes >= line)
        #expect(bytes < 512 << 20 || memory.messagesBytes == bytes / 4 * 3)
    }

    @Test func tooLittleMemoryForThreeServicesIsRefused() throws {
        let enough = try settings("--memory-bytes", "\(288 << 20)")
        let limits = ServeSettings.limits(enough)
        #expect(try StackMemory.limits(of: "messages", enough, from: limits).processBytesInFlightMax == 32 << 20)
        #expect(try StackMemory.limits(of: "auth", enough, from: limits).clientBytesInFlightMax == 8 << 20)
        let tooLittle = try settings("--memory-bytes", "\((288 << 20) - 24)")
        let error = #expect(throws: SettingsError.self) {
            try StackMemory.limits(of: "auth", tooLittle, from: ServeSettings.limits(tooLittle))
        }
        #expect(error?.description.hasPrefix("setting memory-bytes: 301989864 bytes are too few") == true)
        #expect(error?.description.contains("give \(288 << 20) or more") == true)
    }

    @Test func aBudgetThatIsSetAppliesToEachService() throws {
        let settings = try settings("--process-bytes-in-flight-max", "5000000", "--response-bytes-max", "1000000")
        let limits = try StackMemory.limits(of: "auth", settings, from: ServeSettings.limits(settings))
        #expect(limits.processBytesInFlightMax == 5_000_000)
    }
}
