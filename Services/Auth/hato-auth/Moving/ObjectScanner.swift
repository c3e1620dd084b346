/// Finds the JSON objects of a file whose bytes arrive a block at a time: one after another (a line each), in an array,
/// or in `{"users": […]}`, as `firebase auth:export` writes them. Holds one object at a time. Pure.
///
/// It only finds where objects begin and end; whether each is JSON is up to the parser.
struct ObjectScanner {
    /// What is wrong with the file as a whole.
    enum Problem: Error, Hashable {
        /// Something other than an object, at this byte.
        case noObject(at: Int)
        case tooLong(Int)
        case endsTooEarly

        var message: String {
            switch self {
            case .noObject(let position):
                "has no accounts at byte \(position); it should be what `firebase auth:export` or "
                    + "`hato-auth users export` writes, or a JSON object a line"
            case .tooLong(let bytes): "has an account of more than \(bytes) bytes"
            case .endsTooEarly: "ends too early"
            }
        }
    }

    private enum Container {
        /// Objects follow each other, or nothing was read yet.
        case none
        case array
        case users
        /// After the end of an array.
        case ended
    }

    static let objectBytesMax = 1 << 20
    private static let beginning = Array(#"{"users":["#.utf8)

    private var container = Container.none
    private var hasObjects = false
    private var object: [UInt8] = []
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    private var bytes: ArraySlice<UInt8> = []
    /// The number of bytes that were scanned.
    private var position = 0

    /// The next bytes of the file; all earlier ones must have been scanned (`next` returned nil).
    mutating func append(_ block: ArraySlice<UInt8>) { bytes = block }

    /// The bytes of the next object; nil when its end has not arrived.
    mutating func next() throws(Problem) -> [UInt8]? {
        while let byte = bytes.popFirst() {
            position += 1
            if isInString {
                take(inString: byte)
            } else if depth == 0 {
                try takeBetween(byte)
            } else if let whole = takeInside(byte) {
                return whole
            }
            guard object.count <= Self.objectBytesMax else { throw .tooLong(Self.objectBytesMax) }
        }
        return nil
    }

    /// The file has ended.
    func finish() throws(Problem) {
        switch container {
        case .array, .users: throw .endsTooEarly
        case .none, .ended: if depth > 0 { throw .endsTooEarly }
        }
    }

    private mutating func take(inString byte: UInt8) {
        object.append(byte)
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isInString = false
        }
    }

    private mutating func takeBetween(_ byte: UInt8) throws(Problem) {
        switch (byte, container) {
        case (UInt8(ascii: " "), _), (UInt8(ascii: "\n"), _), (UInt8(ascii: "\r"), _), (UInt8(ascii: "\t"), _): break
        case (UInt8(ascii: "{"), .none), (UInt8(ascii: "{"), .array), (UInt8(ascii: "{"), .users):
            object = [byte]
            depth = 1
        case (UInt8(ascii: ","), .array), (UInt8(ascii: ","), .users): break
        case (UInt8(ascii: "["), .none) where !hasObjects: container = .array
        case (UInt8(ascii: "]"), .array), (UInt8(ascii: "]"), .users): container = .ended
        case (UInt8(ascii: "}"), .ended): break
        default: throw .noObject(at: position)
        }
    }

    /// Takes a byte of an object; returns the object when it is whole.
    private mutating func takeInside(_ byte: UInt8) -> [UInt8]? {
        switch byte {
        case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t"): return nil
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
        object.append(byte)
        if container == .none, !hasObjects, depth == 2, object == Self.beginning {
            container = .users
            depth = 0
            object = []
            return nil
        }
        guard depth == 0 else { return nil }
        hasObjects = true
        return object
    }
}
