import HatoModel

/// For how long codes are valid (spec auth §6), in milliseconds.
struct CodeLifetimes: Sendable {
    static let digits: Int64 = 600_000

    /// Of the long form.
    static func long(_ type: Auth.CodeType) -> Int64 {
        switch type {
        case .passwordReset: 3_600_000
        case .signIn: 6 * 3_600_000
        case .verifyEmail: 3 * day
        case .changeEmail, .signUp: day
        case .invite, .recoverEmail: 7 * day
        }
    }

    /// Types whose long form is pasted or clicked days later have no digits.
    static func hasDigits(_ type: Auth.CodeType) -> Bool { type != .invite && type != .recoverEmail }

    private static let day: Int64 = 86_400_000
}
