import HatoModel

/// Validates the ids of users.
enum UserID {
    /// The problem of a uid that an administrator or the signer of a custom token chose. It need not be a key of the
    /// tree: Firebase's accounts have e-mail addresses as uids, too.
    static func problem(with uid: String) -> FieldProblem? {
        guard isUid(uid) else {
            return FieldProblem(
                "uid", "INVALID_LOCAL_ID",
                "The uid should have 1 to \(UserIDLimits.codePointsMax) Unicode code points without control "
                    + "characters, such as masuo-1")
        }
        return nil
    }

    /// Whether an account may have it.
    static func isUid(_ text: String) -> Bool {
        guard text.utf8.count <= UserIDLimits.bytesMax else { return false }
        let isPlain = !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
        return isPlain && (1...UserIDLimits.codePointsMax).contains(text.unicodeScalars.count)
    }
}
