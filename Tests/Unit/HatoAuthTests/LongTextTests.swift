import HatoModel
import Testing

@testable import HatoAuth

/// Megabytes in a member of a form are refused for their number of bytes, before a character is looked at.
///
/// Times are compared: a long text may take as long as many short ones, and the shortest of several runs counts.
@Suite(.serialized) struct LongTextTests {
    private static let long = String(repeating: "a", count: 32 << 20)
    private let policy = AccountFormPolicy(AuthConfiguration())

    @Test(arguments: ["email", "username", "password", "displayName", "photoUrl", "customAttributes"])
    func textOfAFormIsMeasuredFirst(_ member: String) {
        let start = member == "photoUrl" ? "https://a/" : ""
        let (long, short) = (start + Self.long, start + "a")
        let isRefused = { (text: String) in
            do {
                _ = try policy.check(Self.form(member, text))
                return false
            } catch { return true }
        }
        #expect(isRefused(long))
        let times = (shortest { _ = isRefused(long) }, shortest { _ = isRefused(short) })
        #expect(times.0 < times.1 * 20 + .microseconds(200), "\(member): \(times)")
    }

    @Test func uidIsMeasuredFirst() async throws {
        let bench = try await AuthBench.open()
        let users = UsersMethods(service: bench.service)
        func time(_ text: String) async -> Duration {
            var best = Duration.seconds(1_000)
            for _ in 0..<5 {
                let start = ContinuousClock.now
                let error = await wireError { try await users.users(Auth.Users.List(after: text)) }
                #expect(error?.reason == "INVALID_PAGE_SELECTION")
                best = min(best, ContinuousClock.now - start)
            }
            return best
        }
        let (long, short) = (await time(Self.long), await time("\n"))
        #expect(long < short * 20 + .microseconds(200), "\(long), \(short)")
    }

    private static func form(_ member: String, _ text: String) -> AccountForm {
        var form = AccountForm()
        switch member {
        case "email": form.email = text
        case "username": form.username = text
        case "password": form.password = text
        case "displayName": form.displayName = text
        case "photoUrl": form.photoUrl = text
        default: form.customAttributes = text
        }
        return form
    }

    private func shortest(_ body: () -> Void) -> Duration {
        (0..<5).map { _ in ContinuousClock().measure(body) }.min() ?? .zero
    }
}
