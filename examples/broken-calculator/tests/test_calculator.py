import unittest
from decimal import Decimal

from calculator import line_total, receipt_total

LINES = [("19.99", 3), ("0.10", 7)]


class ReceiptTest(unittest.TestCase):
    def test_a_line_is_price_times_quantity(self):
        self.assertEqual(line_total("19.99", 3), Decimal("59.97"))

    def test_without_a_discount_the_lines_add_up(self):
        self.assertEqual(receipt_total(LINES), Decimal("60.67"))

    def test_fifteen_percent_are_taken_off(self):
        self.assertEqual(receipt_total(LINES, percent=15), Decimal("51.57"))


if __name__ == "__main__":
    unittest.main()
