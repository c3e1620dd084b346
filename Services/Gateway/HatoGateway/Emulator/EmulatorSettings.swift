import HatoModel
import HatoRPC
import NIOCore

/// The settings that an emulator gives to auth at its start.
enum EmulatorSettings {
    private static var request: Auth.Settings.Set {
        var request = Auth.Settings.Set()
        request.hidesWhoExists = false
        request.passwordLengthMin = 6
        request.recentSignInSeconds = 0
        return request
    }

    /// How long auth is waited for: services start in any order.
    private static let patience: Duration = .seconds(30)

    /// Returns the settings that stay as auth was started with them.
    ///
    /// - Throws: `GatewayStartError`.
    static func set(at auth: RPCClientConfiguration, _ administratorKey: String) async throws -> [String] {
        let client = RPCClient(auth)
        let deadline = ContinuousClock.now + patience
        while true {
            let result: Result<Auth.Settings, any Error>
            do { result = .success(try await client.call(request, credential: administratorKey)) } catch {
                result = .failure(error)
            }
            switch result {
            case .success(let settings):
                await client.close()
                return request.members.members.map(\.name).filter { (settings.fixed ?? []).contains($0) }
            case .failure(let error as RPCError) where !error.isRetryable || ContinuousClock.now > deadline:
                await client.close()
                throw GatewayStartError.emulatorSettings(error.message)
            case .failure(let error as CancellationError): throw error
            case .failure: try await Task.sleep(for: .milliseconds(100))
            }
        }
    }
}
