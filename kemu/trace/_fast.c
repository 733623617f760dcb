/* What kemu/trace/_plain.py does, in C: where records go, the barrier, the marks, and going over a log.
 *
 * That file is the reference: the same names, the same order of effects, the same errors, and it runs
 * wherever this one was not compiled.  tests/properties/test_implementations.py holds the two together.
 *
 * One interpreter, one machine that runs: the state of the module is static, as the tape is in Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define VERSION 3	/* as in _plain.py */

#ifndef SOURCE
#define SOURCE 0	/* CRC-32 of this file, so that a test can see whether it was compiled as it is now */
#endif

static PyObject *log_list;	/* list: four slots an event; NULL: nothing is recorded */
static PyObject *mark_list;	/* list: two slots a mark; NULL as above */
static PyObject *refuse;	/* called with (obj, field) instead of recording; NULL: allowed */

static PyObject *object_setattr;	/* object.__setattr__, the _restore of a structure */
static PyObject *table_put;		/* put below, the _restore of a table */
static PyObject *restore_name;		/* "_restore" */
static PyObject *frames_name;		/* "frames" */
static PyObject *first_store_name;	/* "_first_store" */
static PyObject *index_of[512];		/* the keys of all frames */

/* Append the items to the list, all or none. */
static int append(PyObject *list, PyObject *const *items, int count)
{
	Py_ssize_t size = PyList_GET_SIZE(list);

	if (size + count <= ((PyListObject *)list)->allocated) {
		for (int i = 0; i < count; i++)
			PyList_SET_ITEM(list, size + i, Py_NewRef(items[i]));
		Py_SET_SIZE(list, size + count);
		return 0;
	}
	for (int i = 0; i < count; i++) {
		if (PyList_Append(list, items[i]) < 0) {
			PyList_SetSlice(list, size, PY_SSIZE_T_MAX, NULL);
			return -1;
		}
	}
	return 0;
}

/* Record one event, or refuse it. */
static int record(PyObject *obj, PyObject *field, PyObject *old, PyObject *new)
{
	PyObject *items[] = {obj, field, old, new}, *done;

	if (log_list)
		return append(log_list, items, 4);
	if (!refuse)
		return 0;
	done = PyObject_CallFunctionObjArgs(refuse, obj, field, NULL);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

static int expect(const char *name, Py_ssize_t given, Py_ssize_t expected)
{
	if (given == expected)
		return 0;
	PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", name, expected, given);
	return -1;
}

/* ---------------------------------------------------------------- where records go */

static PyObject *direct(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	PyObject **to[] = {&log_list, &mark_list, &refuse};

	if (expect("direct", count, 3) < 0)
		return NULL;
	for (int i = 0; i < 2; i++) {
		if (args[i] != Py_None && !PyList_CheckExact(args[i]))
			return PyErr_Format(PyExc_TypeError, "direct() takes lists or None");
	}
	for (int i = 0; i < 3; i++)
		Py_XSETREF(*to[i], args[i] == Py_None ? NULL : Py_NewRef(args[i]));
	Py_RETURN_NONE;
}

static PyObject *emit(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	if (expect("emit", count, 4) < 0 || record(args[0], args[1], args[2], args[3]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *mark(PyObject *module, PyObject *fid)
{
	PyObject *items[] = {NULL, fid};
	int done;

	if (!mark_list)
		Py_RETURN_NONE;
	items[0] = PyLong_FromSsize_t(log_list ? PyList_GET_SIZE(log_list) : 0);
	if (!items[0])
		return NULL;
	done = append(mark_list, items, 2);
	Py_DECREF(items[0]);
	if (done < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- structures */

/* The place of a field in a structure, NULL if that is no slot with something in it. */
static PyObject **slot(PyObject *obj, PyObject *field)
{
	PyObject *found = _PyType_Lookup(Py_TYPE(obj), field), **place;

	if (!found || !Py_IS_TYPE(found, &PyMemberDescr_Type))
		return NULL;
	if (((PyMemberDescrObject *)found)->d_member->type != T_OBJECT_EX)
		return NULL;
	place = (PyObject **)((char *)obj + ((PyMemberDescrObject *)found)->d_member->offset);
	return *place ? place : NULL;
}

/* object.__setattr__ */
static int store_field(PyObject *obj, PyObject *field, PyObject *value)
{
	PyObject **place = slot(obj, field), *old;

	if (!place)
		return PyObject_GenericSetAttr(obj, field, value);
	old = *place;
	*place = Py_NewRef(value);
	Py_DECREF(old);
	return 0;
}

/* The barrier: record, then store. */
static int recorded_setattro(PyObject *self, PyObject *field, PyObject *value)
{
	PyObject **place = slot(self, field), *old;
	int done;

	if (!value)
		return PyObject_GenericSetAttr(self, field, value);
	old = place ? Py_NewRef(*place) : PyObject_GetAttr(self, field);
	if (!old)
		return -1;
	done = record(self, field, old, value);
	Py_DECREF(old);
	return done < 0 ? -1 : store_field(self, field, value);
}

static PyObject *raw(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	if (expect("raw", count, 2) < 0 || store_field(self, args[0], args[1]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *bar(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	PyTypeObject *type;

	if (expect("bar", count, 2) < 0)
		return NULL;
	if (!PyType_Check(args[0]))
		return PyErr_Format(PyExc_TypeError, "bar() takes a class");
	type = (PyTypeObject *)args[0];
	type->tp_setattro = args[1] == Py_True ? recorded_setattro : PyObject_GenericSetAttr;
	PyType_Modified(type);
	Py_RETURN_NONE;
}

static PyObject *add(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	PyObject *old, *value;
	long sum;

	if (expect("add", count, 3) < 0)
		return NULL;
	old = PyObject_GetAttr(args[0], args[1]);
	if (!old)
		return NULL;
	sum = PyLong_AsLong(old);
	Py_DECREF(old);
	sum += PyLong_AsLong(args[2]);
	if (PyErr_Occurred())
		return NULL;
	value = PyLong_FromLong((int)(unsigned int)sum);
	if (value && PyObject_SetAttr(args[0], args[1], value) < 0)
		Py_CLEAR(value);
	return value;
}

/* ---------------------------------------------------------------- tables */

static int store_key(PyObject *table, PyObject *key, PyObject *value)
{
	int there;

	if (value != Py_None)
		return PyDict_SetItem(table, key, value);
	there = PyDict_Contains(table, key);
	return there > 0 ? PyDict_DelItem(table, key) : there;
}

static PyObject *put(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	if (expect("put", count, 2) < 0 || store_key(self, args[0], args[1]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* Record, then set a key. */
static int record_key(PyObject *table, PyObject *key, PyObject *value)
{
	PyObject *old = PyDict_GetItemWithError(table, key);
	int done;

	if (!old && PyErr_Occurred())
		return -1;
	old = Py_NewRef(old ? old : Py_None);
	done = record(table, key, old, value);
	Py_DECREF(old);
	return done < 0 ? -1 : store_key(table, key, value);
}

static PyObject *recorded_put(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	if (expect("put", count, 2) < 0 || record_key(self, args[0], args[1]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- a log */

static PyObject *changes(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	long long i, mask, was;
	Py_ssize_t found = 0;

	if (expect("changes", count, 5) < 0)
		return NULL;
	if (!PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]))
		return PyErr_Format(PyExc_TypeError, "changes() takes lists");
	i = PyLong_AsLongLong(args[3]);
	mask = PyLong_AsLongLong(args[4]);
	if (PyErr_Occurred())
		return NULL;
	for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[1]); at++) {
		PyObject *items[] = {PyList_GET_ITEM(args[1], at), args[2], NULL, NULL};
		int done = 0;

		items[2] = PyObject_GetAttr(items[0], args[2]);
		if (!items[2])
			return NULL;
		was = PyLong_AsLongLong(items[2]);
		if (was == -1 && PyErr_Occurred())
			done = -1;
		else if (((was + i) & mask) != was) {
			items[3] = PyLong_FromLongLong((was + i) & mask);
			done = items[3] ? append(args[0], items, 4) : -1;
			found++;
		}
		Py_DECREF(items[2]);
		Py_XDECREF(items[3]);
		if (done < 0)
			return NULL;
	}
	return PyLong_FromSsize_t(found);
}

/* obj._restore(field, value), where ``how`` is the _restore of its type */
static int restore(PyObject *how, PyObject *obj, PyObject *field, PyObject *value)
{
	PyObject *done;

	if (how == object_setattr)
		return store_field(obj, field, value);
	if (how == table_put && PyDict_Check(obj))
		return store_key(obj, field, value);
	done = PyObject_CallMethodObjArgs(obj, restore_name, field, value, NULL);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

/* Restore slot ``which`` of one event after the other. */
static PyObject *go_over(PyObject *log, Py_ssize_t first, Py_ssize_t step, int which)
{
	if (!PyList_CheckExact(log) || PyList_GET_SIZE(log) % 4)
		return PyErr_Format(PyExc_ValueError, "a log is a list of four slots an event");
	for (Py_ssize_t at = first; at >= 0 && at < PyList_GET_SIZE(log); at += step) {
		PyObject *obj = Py_NewRef(PyList_GET_ITEM(log, at));
		PyObject *field = Py_NewRef(PyList_GET_ITEM(log, at + 1));
		PyObject *value = Py_NewRef(PyList_GET_ITEM(log, at + which));
		PyObject *how = _PyType_Lookup(Py_TYPE(obj), restore_name);
		int done = restore(how, obj, field, value);

		Py_DECREF(obj);
		Py_DECREF(field);
		Py_DECREF(value);
		if (done < 0)
			return NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *back(PyObject *module, PyObject *log)
{
	return go_over(log, PyList_Check(log) ? PyList_GET_SIZE(log) - 4 : 0, -4, 2);
}

static PyObject *forward(PyObject *module, PyObject *log)
{
	return go_over(log, 0, 4, 3);
}

/* ---------------------------------------------------------------- RAM */

/* The word at an index of a frame, the table ``frames`` holding the frames; 0 where there is none.  -1 with an
 * exception set on an error. */
static unsigned long long word(PyObject *frames, unsigned long long pfn, int index)
{
	PyObject *key = PyLong_FromUnsignedLongLong(pfn), *frame, *found;

	frame = key ? PyDict_GetItemWithError(frames, key) : NULL;
	Py_XDECREF(key);
	if (!frame)
		return PyErr_Occurred() ? -1ULL : 0;
	found = PyDict_GetItemWithError(frame, index_of[index & 511]);
	if (!found)
		return PyErr_Occurred() ? -1ULL : 0;
	return PyLong_AsUnsignedLongLong(found);
}

/* The toy tables of an exercise may point beyond 64 bits. */
static PyObject *load_beyond(PyObject *self, PyObject *pa)
{
	PyObject *plain = PyImport_ImportModule("kemu.trace._plain"), *found;

	found = plain ? PyObject_CallMethod(plain, "load", "OO", self, pa) : NULL;
	Py_XDECREF(plain);
	return found;
}

static PyObject *load(PyObject *self, PyObject *pa)
{
	unsigned long long at = PyLong_AsUnsignedLongLong(pa), found;
	PyObject *frames;

	if (at == -1ULL && PyErr_Occurred()) {
		if (!PyErr_ExceptionMatches(PyExc_OverflowError))
			return NULL;
		PyErr_Clear();
		return load_beyond(self, pa);
	}
	frames = PyObject_GetAttr(self, frames_name);
	if (!frames)
		return NULL;
	found = word(frames, at >> 12, at >> 3 & 511);
	Py_DECREF(frames);
	return found == -1ULL && PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(found);
}

static PyObject *store(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	unsigned long long pa;
	PyObject *frames, *pfn, *frame, *value;
	int done;

	if (expect("store", count, 2) < 0)
		return NULL;
	pa = PyLong_AsUnsignedLongLong(args[0]);
	if (pa == -1ULL && PyErr_Occurred())
		return NULL;
	frames = PyObject_GetAttr(self, frames_name);
	pfn = frames ? PyLong_FromUnsignedLongLong(pa >> 12) : NULL;
	frame = pfn ? Py_XNewRef(PyDict_GetItemWithError(frames, pfn)) : NULL;
	if (pfn && !frame && !PyErr_Occurred())
		frame = PyObject_CallMethodOneArg(self, first_store_name, pfn);
	Py_XDECREF(frames);
	Py_XDECREF(pfn);
	if (!frame)
		return NULL;
	value = PyObject_IsTrue(args[1]) ? args[1] : Py_None;
	done = record_key(frame, index_of[pa >> 3 & 511], value);
	Py_DECREF(frame);
	if (done < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* The number in a slot of a tuple; on an error an exception is set. */
static unsigned long long number(PyObject *tuple, Py_ssize_t slot)
{
	PyObject *item = PyTuple_GetItem(tuple, slot);

	return item ? PyLong_AsUnsignedLongLong(item) : 0;
}

static PyObject *last_table(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	unsigned long long pfn, va, plain, pointer, pfn_shift, entry;
	PyObject *upper, *level, *key, *found;

	if (expect("last_table", count, 4) < 0)
		return NULL;
	pfn = PyLong_AsUnsignedLongLong(args[2]) >> 12;
	va = PyLong_AsUnsignedLongLong(args[3]);
	upper = PyTuple_GetItem(args[1], 0);
	plain = number(args[1], 1);
	pointer = number(args[1], 2);
	pfn_shift = number(args[1], 3);
	if (PyErr_Occurred())
		return NULL;
	for (Py_ssize_t i = 0; i < PyTuple_Size(upper); i++) {
		level = PyTuple_GET_ITEM(upper, i);
		entry = word(args[0], pfn, va >> number(level, 0) & number(level, 1));
		if (PyErr_Occurred())
			return NULL;
		if ((entry & plain) != pointer)
			Py_RETURN_NONE;
		pfn = entry >> pfn_shift;
	}
	key = PyLong_FromUnsignedLongLong(pfn);
	found = key ? PyDict_GetItemWithError(args[0], key) : NULL;
	Py_XDECREF(key);
	if (found || PyErr_Occurred())
		return Py_XNewRef(found);
	return PyDict_New();
}

/* ---------------------------------------------------------------- the module */

#define FASTCALL(name) #name, (PyCFunction)(void (*)(void))name, METH_FASTCALL

static PyMethodDef functions[] = {
	{FASTCALL(direct), "direct(log, marks, refuse)"},
	{FASTCALL(emit), "emit(obj, field, old, new)"},
	{FASTCALL(bar), "bar(cls, up)"},
	{FASTCALL(add), "add(obj, field, i)"},
	{"mark", mark, METH_O, "mark(fid)"},
	{FASTCALL(changes), "changes(log, objects, field, i, mask)"},
	{"back", back, METH_O, "back(log)"},
	{"forward", forward, METH_O, "forward(log)"},
	{FASTCALL(last_table), "last_table(frames, pointers, root, va)"},
	{NULL},
};

static PyMethodDef methods[] = {
	{FASTCALL(put), "put of a table"},
	{FASTCALL(recorded_put), "put of a table"},
	{"load", load, METH_O, "load of a PhysMem"},
	{FASTCALL(store), "store of a PhysMem"},
	{FASTCALL(raw), "object.__setattr__, past the barrier"},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, "kemu.trace._fast", "kemu/trace/_plain.py in C", -1, functions,
};

PyMODINIT_FUNC PyInit__fast(void)
{
	PyObject *module = PyModule_Create(&definition);
	PyTypeObject *of[] = {&PyDict_Type, &PyDict_Type, &PyBaseObject_Type, &PyBaseObject_Type, &PyBaseObject_Type};

	frames_name = PyUnicode_InternFromString("frames");
	for (int i = 0; module && i < 5; i++) {
		PyObject *method = PyDescr_NewMethod(of[i], &methods[i]);

		if (!method || PyModule_AddObjectRef(module, methods[i].ml_name, method) < 0)
			Py_CLEAR(module);
		if (i == 0)
			table_put = Py_XNewRef(method);
		if (i == 4)
			object_setattr = Py_XNewRef(method);
		Py_XDECREF(method);
	}
	if (module && (PyModule_AddIntConstant(module, "SOURCE", SOURCE) < 0
		       || PyModule_AddIntConstant(module, "VERSION", VERSION) < 0))
		Py_CLEAR(module);
	first_store_name = PyUnicode_InternFromString("_first_store");
	for (int i = 0; module && i < 512; i++) {
		index_of[i] = PyLong_FromLong(i);
		if (!index_of[i])
			Py_CLEAR(module);
	}
	restore_name = PyUnicode_InternFromString("_restore");
	if (!frames_name || !first_store_name || !restore_name || !object_setattr)
		Py_CLEAR(module);
	return module;
}
