// Numbers for people.

const units = ['B', 'kB', 'MB', 'GB'];

export function bytes(n: number): string {
	let i = 0;
	while (n >= 999.5 && i < units.length - 1) {
		n /= 1000;
		i++;
	}
	return `${i && n < 99.95 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

/** span is a time that something took. */
export function span(ms: number): string {
	if (ms < 1000) return `${Math.round(ms)} ms`;
	if (ms < 59950) return `${(ms / 1000).toFixed(ms < 9995 ? 2 : 1)} s`;
	const s = Math.round(ms / 1000);
	return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}

/** instant is a time after the start: 1:02.345. */
export function instant(ms: number, digits = 3): string {
	const sign = ms < 0 ? '−' : '';
	ms = Math.abs(ms);
	const m = Math.floor(ms / 60000), s = (ms % 60000) / 1000;
	return `${sign}${m}:${s.toFixed(digits).padStart(digits ? 3 + digits : 2, '0')}`;
}

const grouped = new Intl.NumberFormat('en-US'); // made once: lists have hundreds of counts

export const count = (n: number): string => grouped.format(n);

export function short(n: number): string {
	if (n < 10000) return count(n);
	return n < 999500 ? `${(n / 1000).toFixed(n < 99950 ? 1 : 0)}k` : `${(n / 1e6).toFixed(2)}M`;
}

export function cost(usd: number | null | undefined): string {
	if (usd == null) return '–';
	return `$${usd.toFixed(usd < 0.995 ? 4 : 2)}`;
}

/** date is a time of day in UTC, which it says: a page may be read anywhere. */
export function date(ms: number): string {
	return ms > 0 ? `${new Date(ms).toISOString().replace('T', ' ').slice(0, 19)} UTC` : '–';
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
