import HatoModel
import HatoRPC
import HatoTesting

/// Refreshes over the wire: each is a transaction on disk and a signature.
struct RefreshBench: Sendable {
    private static let clients = 64

    var settings: BenchSettings
    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        for count in [1, Self.clients] {
            var sessions: [Auth.Session] = []
            for _ in 0..<count { sessions.append(try await stack.newUser()) }
            let (settings, port, begun) = (settings, stack.configuration(.auth).port, sessions)
            let (syncs, windows) = try await Blocking.run {
                var load = try RefreshLoad(port: port, begun)
                defer { load.close() }
                var (syncs, windows): ([Window], [Window]) = ([], [])
                _ = try load.window(seconds: 0.5)
                for _ in 0..<settings.windows {
                    syncs.append(try Floors.sync(seconds: settings.seconds / 2))
                    windows.append(try load.window(seconds: settings.seconds))
                }
                return (syncs, windows)
            }
            table.add("auth: append 256 bytes, sync, in turn with the refreshes", Window(mediansOf: syncs), "/s")
            var row = Table.Row("auth: refreshes, \(LoadShape(count, 1))", Window(mediansOf: windows), "/s")
            row.ratio = (windows.map(\.perSecond).ratio(to: syncs.map(\.perSecond)), "syncs")
            if count > 1 { row.goals = [Goal(.value, .atLeast(3_000))] }
            table.add(row)
        }
        return table
    }
}
