import HatoModel

/// Validates the ids of users.
enum UserID {
    /// The problem of a uid that an administrator chose. Apps store a user's data under the uid, so it must be a key of
    /// the tree.
    static func problem(with uid: String) -> FieldProblem? {
        guard isUid(uid), TreeKey.problem(uid) == nil else {
            return FieldProblem(
                "uid", "INVALID_LOCAL_ID",
                "The uid should have 1 to \(UserIDLimits.codePointsMax) Unicode code points without . # $ / [ ] and "
                    + "control characters, such as masuo-1")
        }
        return nil
    }

    /// Whether an account may have it; early accounts have uids that no new one gets.
    static func isUid(_ text: String) -> Bool {
        guard text.utf8.count <= UserIDLimits.bytesMax else { return false }
        let isPlain = !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
        return isPlain && (1...UserIDLimits.codePointsMax).contains(text.unicodeScalars.count)
    }
}
