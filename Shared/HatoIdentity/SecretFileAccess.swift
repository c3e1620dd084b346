/// Who owns a file of keys and who else may use it, and whether that is safe for the process that reads it.
///
/// A file belongs to the user of the process, or to root, as secrets that a container engine mounts do. Nobody else
/// may write it. Others may read it only where the process cannot forbid it: secrets that an engine makes belong to
/// root and have mode 0444 unless they say otherwise.
public struct SecretFileAccess: Sendable, Hashable {
    /// What follows from owner and mode.
    public enum Verdict: Sendable, Hashable {
        case safe
        /// The file is used; the operator is told the text.
        case warning(String)
        /// The file is not used; the text says why and what is right.
        case refused(String)
    }

    /// User id of the owner.
    public var owner: UInt32
    /// The permission bits.
    public var mode: UInt32

    /// The access of a file by its owner and mode.
    public init(owner: UInt32, mode: UInt32) {
        self.owner = owner
        self.mode = mode & 0o777
    }

    /// The verdict for a process of the user with the id `user`.
    public func verdict(for user: UInt32) -> Verdict {
        guard owner == user || owner == 0 else {
            return .refused(
                "belongs to user \(owner), but the service runs as user \(user); give it to that user: chown \(user)")
        }
        guard isWrittenOnly(by: user) else {
            return .refused("others may write this file (mode \(octal)); \(right)")
        }
        if owner == user, mode & 0o004 != 0 {
            return .refused("every user may read this file (mode \(octal)); \(right)")
        }
        // A group that root has given the file to is how a service may read it.
        let isWide = owner == user ? mode & 0o040 != 0 : mode & 0o004 != 0
        return isWide ? .warning("other users may read this file (mode \(octal)); \(right)") : .safe
    }

    /// Whether nobody but root and the user with the id `user` can have written the file.
    public func isWrittenOnly(by user: UInt32) -> Bool { (owner == user || owner == 0) && mode & 0o022 == 0 }

    private var octal: String { "0" + String(mode, radix: 8) }

    private var right: String { "its owner alone should: chmod 600" }
}
