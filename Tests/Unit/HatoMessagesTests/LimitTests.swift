import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct LimitTests {
    @Test func theServiceStartsWithEveryLimitAtItsLargest() async throws {
        try await RunningMessages.with(change: { configuration in
            for limit in MessagesLimits.all { limit.set(limit.range.upperBound, in: &configuration.limits) }
        }) { running in
            _ = try await running.administrator.call(Messages.Set(path: "/a", value: 1))
            // Forgets change records that are too old.
            await running.service.keepUpOnce()
            var limits = MessagesLimits()
            limits.changeAgeHoursMax = .max
            #expect(ChangeRetention(limits).ageMsMax > 0)
        }
    }

    @Test func stepsOfRulesAreBoundedBySettings() async throws {
        let rules = """
            {"rules": {
              "a": {".write": "newData.val().matches(/(x|y)*z/)"},
              "$other": {".write": "newData.val().contains('z')"}
            }}
            """
        let value = JSONValue.string(String(repeating: "x", count: 500) + "z")
        for (isRule, isOperation) in [(false, false), (true, false), (false, true)] {
            try await RunningMessages.with(
                rules: rules,
                change: {
                    if isRule { $0.limits.rulesStepsMax = 300 }
                    if isOperation { $0.limits.rulesOperationStepsMax = 300 }
                }
            ) { running in
                let client = running.user("masuo")
                let error = await refusal { try await client.call(Messages.Set(path: "/a", value: value)) }
                #expect((error?.code == .permissionDenied) == (isRule || isOperation))
                // Cheap rules are as they were.
                _ = try await client.call(Messages.Set(path: "/b", value: value))
                await client.close()
            }
        }
    }

    @Test func responseOverTheLimitIsTooBig() async throws {
        try await RunningMessages.with(change: { $0.server.limits.responseBytesMax = 2_000 }) { running in
            let client = running.administrator
            let text = JSONValue.string(String(repeating: "x", count: 1_500))
            _ = try await client.call(Messages.Set(path: "/a", value: ["b": text, "c": text]))
            let refused = await refusal { try await client.call(Messages.Get(path: "/a")) }
            #expect(refused?.code == .resourceExhausted)
            #expect(refused?.reason == "too_big")
            let listened = await refusal { try await client.subscribe(Messages.Listen(path: "/a")) }
            #expect(listened?.reason == "too_big")
            _ = try await client.call(Messages.Get(path: "/a/b"))
        }
    }

    /// The default is the limit of the protocol: 16 MiB a line.
    @Test func responseLimitIsSixteenMebibytesByDefault() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            func write(_ path: TreePath, _ count: Int) async throws {
                let text = JSONValue.string(String(repeating: "x", count: count))
                _ = try await client.call(Messages.Set(path: path, value: text))
            }
            try await write("/a/b", 8 << 20)
            // Space for the names around the texts.
            try await write("/a/c", (8 << 20) - (64 << 10))
            let read = try await client.call(Messages.Get(path: "/a")).value
            #expect(read["b"]?.string?.utf8.count == 8 << 20)
            #expect(read["c"]?.string?.utf8.count == (8 << 20) - (64 << 10))
            try await write("/a/d", 64 << 10)
            let refused = await refusal { try await client.call(Messages.Get(path: "/a")) }
            #expect(refused?.code == .resourceExhausted)
            #expect(refused?.reason == "too_big")
        }
    }

    @Test func numberOfDatabasesIsLimited() async throws {
        try await RunningMessages.with(change: { $0.limits.databasesMax = 2 }) { running in
            let client = running.administrator
            _ = try await client.call(Messages.Databases.Create(database: DatabaseName("b")))
            let refused = await refusal {
                try await client.call(Messages.Databases.Create(database: DatabaseName("c")))
            }
            #expect(refused?.reason == "too_many_databases")
        }
    }

    @Test func lengthOfRulesAndNumberOfIndexesAreLimited() async throws {
        try await RunningMessages.with(change: {
            $0.limits.rulesBytesMax = 400
            $0.limits.indexesPerDatabaseMax = 2
        }) { running in
            let client = running.administrator
            let indexes = #"{"rules": {"a": {".indexOn": ["x", "y", "z"]}}}"#
            let many = await refusal { try await client.call(Messages.Rules.Set(rules: indexes)) }
            #expect(many?.reason == "too_many_indexes")
            let long = indexes + String(repeating: " ", count: 400)
            let refused = await refusal { try await client.call(Messages.Rules.Set(rules: long)) }
            #expect(refused?.reason == "too_long")
        }
    }

    /// Comparing each with each, ten times as many would take a hundred times as long.
    @Test func manyIndexesAreRefusedAtOnce() async throws {
        try await RunningMessages.with { running in
            func time(ofRefusing count: Int) async -> Duration {
                let names = (0..<count).map { "\"n\($0)\"" }.joined(separator: ",")
                let rules = #"{"rules": {"a": {".indexOn": [\#(names)]}}}"#
                let began = ContinuousClock.now
                let many = await refusal { try await running.administrator.call(Messages.Rules.Set(rules: rules)) }
                #expect(many?.reason == "too_many_indexes")
                return began.duration(to: .now)
            }
            _ = await time(ofRefusing: 4_000)
            let few = await time(ofRefusing: 4_000)
            #expect(await time(ofRefusing: 40_000) < few * 50)
        }
    }

    @Test func placesOfAnUpdateAndTimeOfGatheringAreLimited() async throws {
        try await RunningMessages.with(change: {
            $0.limits.updatePathsMax = 1
            $0.limits.coalesceMsMax = 10
            $0.limits.listenersMax = 1
        }) { running in
            let client = running.administrator
            let update = await refusal { try await client.call(Messages.Update(path: "/", values: ["a": 1, "b": 2])) }
            #expect(update?.reason == "too_many_paths")
            var listen = Messages.Listen(path: "/a")
            listen.coalesceMs = 11
            #expect(await refusal { try await client.subscribe(listen) }?.reason == "invalid_time")
            listen.coalesceMs = 10
            let held = try await client.subscribe(listen)
            defer { withExtendedLifetime(held) {} }
            let other = running.user("a")
            let second = await refusal { try await other.subscribe(Messages.Listen(path: "/a")) }
            #expect(second?.reason == "too_many_listeners")
        }
    }

    /// One user cannot take the listeners of all; administrators are not counted.
    @Test func listenersOfAUserAreLimitedOverItsConnections() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersPerClientMax = 2 }) { running in
            let listen = Messages.Listen(path: "/a")
            let (one, two, other) = (running.user("a"), running.user("a"), running.user("b"))
            let first = try await one.subscribe(listen)
            let second = try await two.subscribe(listen)
            #expect(await refusal { try await two.subscribe(listen) }?.reason == "too_many_listeners")
            let others = try await other.subscribe(listen)
            let administrators = [
                try await running.administrator.subscribe(listen), try await running.administrator.subscribe(listen),
                try await running.administrator.subscribe(listen),
            ]
            first.cancel()
            // Behind what the end of the subscription sends.
            _ = try await one.call(Messages.Get(path: "/a"))
            let again = try await two.subscribe(listen)
            #expect(await refusal { try await one.subscribe(listen) }?.reason == "too_many_listeners")
            withExtendedLifetime((second, others, administrators, again)) {}
        }
    }

    @Test func combinationsThatMeanNothingAreRefused() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var get = Messages.Get(path: "/a", query: TreeQuery(order: .key), form: .export)
            get.shallow = true
            #expect(await refusal { try await client.call(get) }?.reason == "shallow_alone")
            get.shallow = nil
            get.etag = true
            #expect(await refusal { try await client.call(get) }?.reason == "etag_of_query")
            var set = Messages.Set(path: "/a", value: 1, ifMatch: "null_etag")
            set.ifVersion = 1
            #expect(await refusal { try await client.call(set) }?.reason == "two_conditions")
            let deep = await refusal { try await client.subscribe(Messages.Listen(path: "/a/.priority")) }
            #expect(deep?.reason == "invalid_path")
        }
    }

    @Test func unknownAndMissingParametersAreNamed() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            for method in ["messages.get", "messages.set", "messages.update", "messages.push", "messages.remove"] {
                let missing = await refusal {
                    try await client.call(method: method, params: ["value": 1, "values": [:]])
                }
                #expect(missing?.code == .invalidParams, "\(method)")
                let unknown = await refusal {
                    try await client.call(
                        method: method, params: ["path": "/a", "value": 1, "values": [:], "pathh": "/b"])
                }
                #expect(unknown?.code == .invalidParams, "\(method)")
                let wrong = await refusal { try await client.call(method: method, params: ["path": 7]) }
                #expect(wrong?.data["parameter"] == "path", "\(method)")
            }
            let key = await refusal { try await client.call(method: "messages.get", params: ["path": "/a.b"]) }
            #expect(key?.code == .invalidArgument)
            let name = await refusal {
                try await client.call(method: "messages.get", params: ["path": "/a", "database": "No"])
            }
            #expect(name?.reason == "invalid_database")
        }
    }
}
