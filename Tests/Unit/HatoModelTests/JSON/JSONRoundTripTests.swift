import HatoModel
import HatoTesting
import Testing

/// Random values, written and read back. A failure prints the seed; pass it to `SeededRandom` to repeat the case.
@Suite struct JSONRoundTripTests {
    @Test func whatIsWrittenIsReadBack() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for _ in 0..<400 {
            let value = random.value(depth: 4)
            let bytes = value.encoded
            let again = try JSONParser.parse(bytes)
            #expect(again == value, "seed \(seed)")
            #expect(again.encoded == bytes, "seed \(seed)")
            #expect(again.hashValue == value.hashValue, "seed \(seed)")
        }
    }

    @Test func everyDoubleReadsBackToItself() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for _ in 0..<20_000 {
            let number = random.number()
            let text = String(decoding: JSONValue.number(number).encoded, as: UTF8.self)
            let read = try JSONParser.parse(text).number
            #expect(read == number, "seed \(seed): \(text)")
        }
    }

    @Test func decimalsAreReadAsTheStandardLibraryReadsThem() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for _ in 0..<20_000 {
            let whole = UInt64.random(in: 0...(1 << UInt64.random(in: 1...62, using: &random)), using: &random)
            let fraction = UInt64.random(in: 0...(1 << UInt64.random(in: 1...62, using: &random)), using: &random)
            let exponent = Int.random(in: -330...280, using: &random)
            let text = "\(whole).\(fraction)e\(exponent)"
            #expect(try JSONParser.parse(text).number == Double(text), "seed \(seed): \(text)")
        }
    }

    @Test func damagedTextsNeverTrap() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for _ in 0..<2_000 {
            var bytes = random.value(depth: 3).encoded
            for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
                }
            }
            // Either it is refused, or the value reads back equal when it is written.
            guard let value = try? JSONParser.parse(bytes) else { continue }
            #expect(try JSONParser.parse(value.encoded) == value, "seed \(seed)")
        }
    }
}

extension SeededRandom {
    mutating func number() -> Double {
        switch Int.random(in: 0..<5, using: &self) {
        case 0: return Double(Int.random(in: -1000...1000, using: &self))
        case 1: return Double(Int64.random(in: -(1 << 53)...(1 << 53), using: &self))
        case 2: return Double.random(in: -1e6...1e6, using: &self)
        case 3: return (Double.random(in: 0...1, using: &self) * 1000).rounded() / 100
        default:
            let number = Double(bitPattern: next())
            return number.isFinite ? number : 0
        }
    }

    mutating func string() -> String {
        var text = ""
        for _ in 0..<Int.random(in: 0..<24, using: &self) {
            let top: UInt32 = [0x7F, 0x7F, 0x7F, 0x7FF, 0xFFFF, 0x10FFFF].randomElement(using: &self) ?? 0x7F
            text.unicodeScalars.append(Unicode.Scalar(UInt32.random(in: 0...top, using: &self)) ?? "鳩")
        }
        return text
    }

    mutating func value(depth: Int) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &self) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &self))
        case 2: return .number(number())
        case 3, 4: return .string(string())
        case 5:
            let count = Int.random(in: 0..<6, using: &self)
            return .array((0..<count).map { _ in value(depth: depth - 1) })
        default:
            var object = JSONObject()
            for _ in 0..<Int.random(in: 0..<24, using: &self) { object[string()] = value(depth: depth - 1) }
            return .object(object)
        }
    }
}
