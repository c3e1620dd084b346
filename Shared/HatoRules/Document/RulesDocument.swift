/// A rules text as it is written, before anybody asks what it means: JSON with comments, each part with its place.
struct RulesDocument {
    struct Value {
        var kind: Kind
        /// Where its first scalar stands.
        var offset: Int
    }

    indirect enum Kind {
        case object([Member])
        case array([Value])
        case string(PlacedText)
        case number(Double)
        case bool(Bool)
        case null
    }

    struct Member {
        var name: String
        /// Where the name's opening quote stands.
        var offset: Int
        var value: Value
    }

    /// The text of a string with escapes resolved, and for each scalar the place it came from: an expression's problems
    /// are reported where they stand in the document.
    struct PlacedText {
        var scalars: [Unicode.Scalar]
        var offsets: [Int]
        /// Where the closing quote stands.
        var end: Int

        var text: String {
            var text = String.UnicodeScalarView()
            text.append(contentsOf: scalars)
            return String(text)
        }

        func place(_ index: Int) -> Int { index < offsets.count ? offsets[index] : end }
    }
}
