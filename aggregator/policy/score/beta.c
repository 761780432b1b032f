/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distribution function I_x(a, b) by continued fraction (DLMF 8.17.22), modified Lentz method:
 *
 *     I_x(a, b) = x^a (1-x)^b / (a B(a, b)) * 1 / (1 + d1 / (1 + d2 / (1 + ...)))
 *     d(2m+1) = -(a+m)(a+b+m) x / ((a+2m)(a+2m+1))        d(2m) = m (b-m) x / ((a+2m-1)(a+2m))
 *
 * which converges quickly for x below the mean; above it, I_x(a, b) = 1 - I_{1-x}(b, a). It takes
 * about sqrt(max(a, b)) steps, so steep distributions (a steady load has shapes of millions) are
 * integrated instead, by Gauss-Legendre rules from x outwards to where nothing is left.
 *
 * The factor before the fraction is the density times x (1-x) / a. Taken from lgamma() it would
 * lose as many digits as the shapes have, since large logarithms cancel. So it is written by the
 * saddle point (C. Loader, 2000: "Fast and accurate computation of binomial probabilities"), where
 * what cancels has been taken out by hand:
 *
 *     x^a (1-x)^b / B(a, b) =
 *         sqrt(a b / (2 pi n)) * exp(e(n) - e(a) - e(b) - D(a, n x) - D(b, n (1-x)))
 *     n = a + b
 *     e(z) = lgamma(z + 1) - (z + 1/2) ln z + z - ln(2 pi) / 2
 *     D(y, m) = y ln(y / m) + m - y
 */
#include "aggregator/policy/score/risk.h"

#include <math.h>
#include <stddef.h>

#define HALF_LN_2PI 0.91893853320467274178
#define TWO_PI	    6.28318530717958647693

/* From here on shapes are steep, and the series of e(z) is exact. */
#define STEEP	     1000.0
#define POINT	     1e100 /* no deviation that a double could tell from 0 */
#define SERIES	     15.0
#define FRACTION_END 1e-14

enum { FRACTION_STEPS = 20000 };

double beta_variance_max(double mean)
{
	return mean > 0 && mean < 1 ? mean * (1 - mean) : 0;
}

bool beta_match(double mean, double variance, struct beta *fit)
{
	double k;

	if (!(mean >= 0 && mean <= 1 && variance >= 0 && variance < mean * (1 - mean)))
		return false;
	k = fmax(mean * (1 - mean) / variance - 1, 0x1p-1074);
	*fit = (struct beta){mean * k, (1 - mean) * k};
	return true;
}

/* The error of Stirling's formula, e(z). */
static double stirling_error(double z)
{
	double zz = z * z;

	if (z < SERIES)
		return lgamma(z + 1) - (z + 0.5) * log(z) + z - HALF_LN_2PI;
	return (1.0 / 12 -
		(1.0 / 360 -
		 (1.0 / 1260 - (1.0 / 1680 - (1.0 / 1188 - 691.0 / 360360 / zz) / zz) / zz) / zz) /
			zz) /
	       z;
}

/*
 * D(y, m) >= 0. Close to m the terms cancel: there y ln(y / m) is expanded in v = (y - m) / (y +
 * m).
 */
static double deviance(double y, double m)
{
	double v, term, sum;

	if (fabs(y - m) > 0.1 * (y + m))
		return y * log(y / m) + m - y;
	v = (y - m) / (y + m);
	sum = (y - m) * v;
	term = 2 * y * v;
	for (int j = 1; j < 100; j++) {
		double next;

		term *= v * v;
		next = sum + term / (2 * j + 1);
		if (next == sum)
			break;
		sum = next;
	}
	return sum;
}

/* x^a (1-x)^b / B(a, b); y = 1 - x. errors = e(a + b) - e(a) - e(b). */
static double factor(struct beta d, double x, double y, double errors)
{
	double n = d.a + d.b;

	return sqrt(d.a / TWO_PI * (d.b / n)) *
	       exp(errors - deviance(d.a, n * x) - deviance(d.b, n * y));
}

static double errors_of(struct beta d)
{
	return stirling_error(d.a + d.b) - stirling_error(d.a) - stirling_error(d.b);
}

/* d(i) of the fraction. */
static double numerator(double a, double b, double x, int i)
{
	double m = floor(i / 2.0);

	if (i % 2)
		return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
	return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
}

static double not_zero(double x)
{
	return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* 1 / (1 + d1 / (1 + ...)): c and d are the ratios of successive numerators and denominators. */
static double fraction(double a, double b, double x)
{
	double c = 1, d = 1 / not_zero(1 + numerator(a, b, x, 1)), f = d;

	for (int i = 2; i < FRACTION_STEPS; i++) {
		double n = numerator(a, b, x, i);

		d = 1 / not_zero(1 + n * d);
		c = not_zero(1 + n / c);
		f *= c * d;
		if (fabs(c * d - 1) < FRACTION_END)
			break;
	}
	return f;
}

/* Gauss-Legendre rule of 16 points on -1..1; the other half is its mirror image. */
static const struct {
	double at, weight;
} rule[] = {
	{0.09501250983763744, 0.18945061045506850}, {0.28160355077925891, 0.18260341504492359},
	{0.45801677765722739, 0.16915651939500254}, {0.61787624440264375, 0.14959598881657673},
	{0.75540440835500303, 0.12462897125553387}, {0.86563120238783174, 0.09515851168249278},
	{0.94457502307323258, 0.06225352393864789}, {0.98940093499164993, 0.02715245941175409},
};

static double integrate(struct beta d, double errors, double from, double to)
{
	double middle = (from + to) / 2, half = (to - from) / 2, sum = 0;

	for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
		double low = middle - half * rule[i].at, high = middle + half * rule[i].at;

		sum += rule[i].weight * (factor(d, low, 1 - low, errors) / (low * (1 - low)) +
					 factor(d, high, 1 - high, errors) / (high * (1 - high)));
	}
	return sum * half;
}

/*
 * The tail of a steep distribution from x away from the mean; x lies beyond the mean on that side.
 */
static double tail(struct beta d, double x, bool upper)
{
	enum { PANELS = 6 };
	double n = d.a + d.b, sigma = sqrt(d.a / n * (d.b / n) / (n + 1));
	double distance = fabs(x - d.a / n), errors = errors_of(d), sum = 0;
	/*
	 * Beyond x it falls at least as fast as exp(-t * distance / sigma^2), and as a normal one.
	 */
	double reach = fmin(10 * sigma, 50 * sigma * sigma / distance);
	double room = upper ? 1 - x : x;

	reach = fmin(reach, room);
	for (int i = 0; i < PANELS; i++) {
		double near = reach * i / PANELS, far = reach * (i + 1) / PANELS;

		sum += integrate(d, errors, upper ? x + near : x - far, upper ? x + far : x - near);
	}
	return sum;
}

double beta_distribution(struct beta d, double x)
{
	double y = 1 - x, mean = d.a / (d.a + d.b), p;

	if (!(d.a > 0 && d.b > 0 && isfinite(d.a) && isfinite(d.b) && x > 0))
		return 0;
	if (x >= 1)
		return 1;
	if (d.a + d.b > POINT)
		return x > mean;
	if (d.a > STEEP && d.b > STEEP) {
		p = tail(d, x, x > mean);
		return fmin(fmax(x > mean ? 1 - p : p, 0), 1);
	}
	p = factor(d, x, y, errors_of(d));
	if (x < (d.a + 1) / (d.a + d.b + 2))
		p = p * fraction(d.a, d.b, x) / d.a;
	else
		p = 1 - p * fraction(d.b, d.a, y) / d.b;
	return fmin(fmax(p, 0), 1);
}
