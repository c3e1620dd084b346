/// Decides whether a password is acceptable (NIST SP 800-63B-4): long enough, not among the most common ones, no rules
/// of composition.
struct PasswordPolicy: Sendable {
    var lengthMin: Int
    var bytesMax: Int
    var refusesCommon: Bool

    init(_ configuration: AuthConfiguration) {
        lengthMin = configuration.passwordLengthMin
        bytesMax = configuration.limits.passwordBytesMax
        refusesCommon = configuration.refusesCommonPasswords
    }

    /// Describes the problem of a password; nil when it is acceptable.
    ///
    /// - Parameter names: publicly known names of the user: e-mail, username.
    func problem(with password: Password, names: [String]) -> FieldProblem? {
        guard password.byteCount <= bytesMax else {
            return weak("Password should have at most \(bytesMax) bytes")
        }
        guard password.length >= max(1, lengthMin) else {
            return weak("Password should be at least \(lengthMin) characters")
        }
        guard refusesCommon else { return nil }
        let folded = password.lowercased
        if names.contains(where: { isName($0, folded) }) {
            return weak("Password should not be the e-mail address or the username")
        }
        if isCommon(folded) || isRepetition(folded) || isSequence(folded) {
            return weak(
                "Password should not be one that is tried first, such as a common word, a repetition or a sequence")
        }
        return nil
    }

    private func weak(_ message: String) -> FieldProblem { FieldProblem("password", "WEAK_PASSWORD", message) }

    private func isName(_ name: String, _ folded: String) -> Bool {
        let name = name.lowercased()
        return folded == name || folded == String(name.prefix { $0 != "@" })
    }

    /// Whether it is on the list, or a repetition of an entry: `iloveyouiloveyou`.
    private func isCommon(_ folded: String) -> Bool {
        let scalars = Array(folded.unicodeScalars)
        return (1...max(1, scalars.count)).contains { period in
            guard scalars.count.isMultiple(of: period), isPeriodic(scalars, period) else { return false }
            var pattern = String.UnicodeScalarView()
            pattern.append(contentsOf: scalars.prefix(period))
            return PasswordBlocklist.all.contains(String(pattern))
        }
    }

    private func isPeriodic(_ scalars: [Unicode.Scalar], _ period: Int) -> Bool {
        scalars.indices.dropFirst(period).allSatisfy { scalars[$0] == scalars[$0 - period] }
    }

    /// `aaaaaa`, `abcabcabc`: a repeated pattern of at most four characters.
    private func isRepetition(_ folded: String) -> Bool {
        let scalars = Array(folded.unicodeScalars)
        return (1...4).contains { period in
            scalars.count >= period * 2 && isPeriodic(scalars, period)
        }
    }

    /// `123456789`, `abcdefgh`, and descending ones; 0 may follow 9.
    private func isSequence(_ folded: String) -> Bool {
        let values = folded.unicodeScalars.map { Int($0.value) }
        guard values.count >= 4 else { return false }
        let steps = zip(values, values.dropFirst()).map { left, right in
            left == 0x39 && right == 0x30 ? 1 : left == 0x30 && right == 0x39 ? -1 : right - left
        }
        return steps.allSatisfy { $0 == 1 } || steps.allSatisfy { $0 == -1 }
    }
}
