import HatoRPC
import HatoRuntime
import Testing

/// Every limit is a setting.
struct LimitSettingsTests {
    @Test func everyLimitOfTheWireIsASettingOfItsName() {
        let settings = Set(ServeSettings.wire.map(\.name))
        let limits = Mirror(reflecting: RPCLimits()).children.compactMap(\.label)
        #expect(limits.count > 20)
        for limit in limits { #expect(settings.contains(Self.settingName(of: limit)), "\(limit)") }
    }

    private static func settingName(of field: String) -> String {
        field.map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined()
    }
}
