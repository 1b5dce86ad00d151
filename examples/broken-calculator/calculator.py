"""A till: prices in, a receipt's total out."""

from decimal import Decimal


def line_total(price, quantity):
    """The price of one line of a receipt."""
    return Decimal(price) * quantity


def with_discount(amount, percent):
    """An amount after a discount of so many percent."""
    return amount - percent / Decimal(100)


def receipt_total(lines, percent=0):
    """The total of (price, quantity) lines after a discount, to the cent."""
    total = sum((line_total(price, quantity) for price, quantity in lines), Decimal(0))
    return with_discount(total, percent).quantize(Decimal("0.01"))
