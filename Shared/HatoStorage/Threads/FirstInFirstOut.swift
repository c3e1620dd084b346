/// A queue: elements are taken in the order in which they were appended, each at a cost independent of their number.
package struct FirstInFirstOut<Element> {
    private var elements: [Element?] = []
    private var head = 0

    package init() {}

    /// The capacity for this many elements is kept when all are taken.
    private static var keptMax: Int { 1_024 }

    package var isEmpty: Bool { head == elements.count }
    package var count: Int { elements.count - head }

    package mutating func append(_ element: Element) { elements.append(element) }

    package mutating func takeFirst() -> Element? {
        guard head < elements.count else { return nil }
        let first = elements[head].take()
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head <= Self.keptMax)
            head = 0
        } else if head >= Self.keptMax, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }
}
